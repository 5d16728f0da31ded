"""The live page of many runs: a line for each run under a folder, and behind it the run's own page."""

from collections.abc import Mapping
from pathlib import Path

from vflens.errors import DataError, VflensError
from vflens.experiments.results.folders import runs_under
from vflens.experiments.results.record import read_runs
from vflens.experiments.watch.events import sentence
from vflens.experiments.watch.page import RunsPage, damaged, panel
from vflens.types import Document


def holds_many(folder: Path) -> bool:
    """Whether ``folder`` holds runs deeper than one experiment's: such as a folder of experiments."""
    return any(folder.resolve() in home.parent.parents for home in runs_under(folder))


class IndexPage:
    """The runs under ``folder``, for :func:`vflens.experiments.watch.server.serve`.

    Raises:
        DataError: the folder is missing or holds no run.
    """

    title = "runs"

    def __init__(self, folder: Path) -> None:
        self._folder, self._pages = folder.resolve(), dict[Path, RunsPage]()
        if not runs_under(folder):
            read_runs([folder])  # says why

    def panels(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """See :class:`vflens.experiments.watch.app.LivePage`; ``at`` in ``chosen`` names the folder of the
        run that is shown, else the lines of all are.
        """
        try:
            page = self._chosen(chosen)
        except VflensError as error:
            words = sentence(str(error))
            return {**_way(chosen), "summary": panel("unreadable", lambda: {"words": words})}
        if page is None:
            return {"index": panel("index", self._index)}
        return {**_way(chosen), **page.panels(chosen)}

    def report(self, chosen: Mapping[str, str]) -> str:
        """The report of the run that ``chosen`` names.

        Raises:
            DataError: it names none, or a file is damaged.
        """
        page = self._chosen(chosen)
        if page is None:
            raise DataError("each run has its own report: choose a run first")
        return page.report(chosen)

    def _chosen(self, chosen: Mapping[str, str]) -> RunsPage | None:
        known = {self._place(home): home for home in runs_under(self._folder)}
        home = known.get(chosen.get("at", ""))
        return None if home is None else self._page(home)

    def _index(self) -> Document:
        lines = [(self._place(home), self._line(home)) for home in runs_under(self._folder)]
        return {"folder": sentence(str(self._folder)), "lines": lines}

    def _line(self, home: Path) -> Document:
        """What the index says of the run in ``home``; one damaged run must not end the page."""
        try:
            return self._page(home).line()
        except VflensError as error:
            return {"defenses": "", "changed": "", **damaged(sentence(str(error)))}

    def _page(self, home: Path) -> RunsPage:
        if home not in self._pages:
            self._pages[home] = RunsPage([home])
        return self._pages[home]

    def _place(self, home: Path) -> str:
        return home.relative_to(self._folder).as_posix()


def _way(chosen: Mapping[str, str]) -> dict[str, str]:
    """The panel that leads back to the index."""
    return {"way": panel("way", lambda: {"at": sentence(chosen["at"])})}
