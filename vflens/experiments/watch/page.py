"""The live page of runs: its panels, made from the templates and charts of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from vflens.experiments.pages.page import templates
from vflens.experiments.pages.report import render
from vflens.experiments.results.folders import PartyRun, read_runs
from vflens.experiments.results.ledger import shown as shown_name
from vflens.experiments.results.verdict import labels
from vflens.experiments.watch.progress import Pace, Progress, progress
from vflens.experiments.watch.reading import Folders

_templates = cache(templates)  # compiling them takes longer than a reading


class RunsPage:
    """The runs in ``given`` folders, for :func:`vflens.experiments.watch.server.serve`.

    Raises:
        ConfigError, DataError: see :func:`vflens.experiments.results.folders.read_runs`.
    """

    title = "watch"

    def __init__(self, given: Sequence[Path]) -> None:
        self._given = given
        self._folders = Folders(given)
        self._paces: dict[Path, Pace] = {}
        read_runs(given)

    def panels(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """See :class:`vflens.experiments.watch.app.LivePage`."""
        self._folders.refresh()
        runs = self._folders.runs
        module = _templates().get_template("watch.html.j2").module
        names = map(shown_name, labels(runs))
        listed = [
            (name, [self._progress(p) for p in run.parties]) for name, run in zip(names, runs, strict=True)
        ]
        return {"parties": str(module.parties(listed, self._folders.problems))}  # type: ignore[attr-defined]

    def report(self) -> str:
        """The page of ``vflens report``."""
        return render(read_runs(self._given))

    def _progress(self, party: PartyRun) -> Progress:
        return progress(party, self._paces.setdefault(party.folder, Pace()))
