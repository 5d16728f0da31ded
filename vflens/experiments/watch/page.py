"""The live page of runs: an overview of all of them, and the panels of one."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from vflens.errors import DataError, VflensError
from vflens.experiments.outcome.words import number, rows_of
from vflens.experiments.pages.page import templates
from vflens.experiments.pages.report import render
from vflens.experiments.results.ledger import shown
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.titles import labels
from vflens.experiments.watch import panels
from vflens.experiments.watch.events import sentence
from vflens.experiments.watch.reading import Folders
from vflens.types import Document

T = TypeVar("T")


class RunsPage:
    """The runs in ``given`` folders, for :func:`vflens.experiments.watch.server.serve`.

    Raises:
        ConfigError: two folders hold the same party of the same run.
        DataError: a folder is missing or holds no run, or a file is damaged.
    """

    title = "watch"

    def __init__(self, given: Sequence[Path]) -> None:
        self._given, self._folders = given, Folders(given)
        self._folders.refresh()
        if not self._folders.runs:
            read_runs(given)  # says why
        self._alarms: WeakKeyDictionary[RecordedRun, list[str]] = WeakKeyDictionary()
        self._headlines: WeakKeyDictionary[RecordedRun, Document] = WeakKeyDictionary()
        self._panels: WeakKeyDictionary[RecordedRun, dict[str, str]] = WeakKeyDictionary()

    def panels(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """See :class:`vflens.experiments.watch.app.LivePage`; ``run`` in ``chosen`` names the run shown."""
        self._folders.refresh()
        run = self._chosen(chosen.get("run"))
        of_run = {} if run is None else self._of_results(run)
        return {
            "summary": of_run.get("summary", ""),
            "parties": panel("parties", lambda: self._parties(run)),
            "alarms": panel("alarms", self._attention),
            **{name: of_run.get(name, "") for name in ("errors", "utility", "pictures")},
            "ledger": "" if run is None else panel("ledger", lambda: panels.traffic(run)),
        }

    def line(self) -> Document:
        """What an index says of the first run: ``state``, ``defenses``, ``headline`` and last ``changed``; of
        one with a damaged file why it cannot be read, in place of figures that may be those of a part.
        """
        self._folders.refresh()
        run = next(iter(self._folders.runs), None)
        parties = [now for p in run.parties if (now := self._folders[p].progress)] if run else []
        row = {"state": ", ".join(sorted({party.state for party in parties})) or "gone"}
        row |= {"defenses": "", "headline": "", **(self._headline(run) if run else {})}
        if self._folders.problems:
            row |= damaged(self._folders.problems[0])
        return {**row, "changed": max((party.changed for party in parties), default="")}

    def _headline(self, run: RecordedRun) -> Document:
        if run not in self._headlines:
            self._headlines[run] = _tried(lambda: panels.summary(run), damaged)
        return self._headlines[run]

    def report(self, chosen: Mapping[str, str]) -> str:
        """The page of ``vflens report``, whatever is ``chosen``.

        Raises:
            ConfigError, DataError: as above.
        """
        return _tried(lambda: render(read_runs(self._given)), _refuse)

    def _chosen(self, name: str | None) -> RecordedRun | None:
        """The run called ``name``; else the first that goes on, or the first."""
        runs = self._folders.runs
        called = (run for run in runs if run.name == name)
        going = (run for run in runs if any(self._folders[p].running for p in run.parties))
        return next(called, next(going, next(iter(runs), None)))

    def _of_results(self, run: RecordedRun) -> dict[str, str]:
        """The panels that change with the results of ``run`` only."""
        if run not in self._panels:
            made = {"summary": panels.summary, "errors": panels.errors, "utility": panels.utility}
            made |= {"pictures": panels.originals}
            self._panels[run] = {name: panel(name, partial(of, run)) for name, of in made.items()}
        return self._panels[run]

    def _parties(self, chosen: RecordedRun | None) -> Document:
        runs = self._folders.runs
        return {
            "problems": self._folders.problems,
            "chosen": chosen,
            "runs": [
                (run, shown(label), [(shown(p.name), p.role, self._folders[p].progress) for p in run.parties])
                for run, label in zip(runs, labels(runs), strict=True)
            ],
        }

    def _attention(self) -> Document:
        """What needs attention in any run; {} if nothing does."""
        runs = self._folders.runs
        loud = [(shown(run.name), alarm) for run in runs for alarm in self._loud(run)]
        parties = [(run, party) for run in runs for party in run.parties]
        logged = [
            (shown(run.name), shown(party.name), alarm, self._folders[party].events.cut)
            for run, party in parties
            for alarm in self._folders[party].events.alarms
        ]
        return {"loud": loud, "logged": logged} if loud or logged else {}

    def _loud(self, run: RecordedRun) -> list[str]:
        if run not in self._alarms:
            self._alarms[run] = _tried(lambda: list(panels.alarms(run)), lambda words: [words])
        return self._alarms[run]


def damaged(words: str) -> Document:
    """The state of a run that cannot be read, and why."""
    return {"state": "damaged", "headline": words}


def panel(name: str, facts: Callable[[], Document]) -> str:
    """A panel as HTML; "" without facts, and a sentence where its files are damaged."""
    return _tried(lambda: _rendered(name, facts()), lambda words: _rendered("unreadable", {"words": words}))


def _tried(compute: Callable[[], T], in_words: Callable[[str], T]) -> T:
    """What ``compute`` gives, or ``in_words`` of why it fails: one damaged file must not end the page."""
    try:
        return compute()
    except VflensError as error:
        return in_words(sentence(str(error)))
    except Exception as error:  # a file can be damaged in ways that no reader expects
        return in_words(
            sentence(f"this cannot be shown ({type(error).__name__}: {error}): look at the files")
        )


def _refuse(words: str) -> NoReturn:
    raise DataError(words)


def _rendered(name: str, document: Document) -> str:
    """A panel as HTML."""
    return str(getattr(_macros(), name)(document)) if document else ""


@cache
def _macros() -> Any:
    """The panels' macros; compiling them takes longer than a reading."""
    environment = templates(number=number, rows_of=rows_of, shown=shown, sentence=sentence)
    return environment.get_template("watch.html.j2").module
