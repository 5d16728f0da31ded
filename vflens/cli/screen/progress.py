"""Progress of a command on standard error: bars on a terminal, elsewhere a line per stage with its time."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from vflens.cli.output import note
from vflens.types import Document
from vflens.words import counted

if TYPE_CHECKING:  # imports the federation's configuration, which a bar does not need
    from vflens.experiments.run.any_experiment import AnyPartiesExperiment

_PAUSE_SECONDS = 5.0  # between two lines of a long stage


class _Stages:
    """Stages by name; each has a bar from its start.

    Without a terminal a stage prints a line every 5 s and at its end. Each line starts with the seconds
    since the start of the command.
    """

    def __init__(self, count: ProgressColumn | None = None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), count or MofNCompleteColumn())
        self._terminal = sys.stderr.isatty()
        self._bars = Progress(
            *columns, TimeRemainingColumn(), console=Console(stderr=True), disable=not self._terminal
        )
        self._tasks: dict[str, TaskID] = {}
        self._began = self._last = time.monotonic()
        self._complete: set[str] = set()

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def update(self, name: str, done: int, total: int, now: str = "") -> None:
        """``done`` of ``total`` of ``name``, and what of it runs ``now``."""
        if not self._terminal:
            self._line(name, done, total, now)
            return
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total)
        words = ": ".join(filter(None, (name, now)))
        self._bars.update(self._tasks[name], description=words, completed=done, total=total)

    def say(self, text: str) -> None:
        """Print a line with its time; nothing on a terminal, which has the bars."""
        if not self._terminal:
            self._last = time.monotonic()
            note(f"{self._last - self._began:7.1f} s  {text}")

    def _line(self, name: str, done: int, total: int, now: str) -> None:
        if name in self._complete:
            return
        if done >= total:
            self._complete.add(name)
        if done >= total or time.monotonic() - self._last >= _PAUSE_SECONDS:
            self.say(": ".join(filter(None, (f"{name} {self.amount(done, total)}", now))))

    def amount(self, done: int, total: int) -> str:
        """The share of a stage that is done, in words."""
        return f"{done}/{total}"


class StageBar(_Stages):
    """The stages of one party or of an audit."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__()
        self._quiet = quiet

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not self._quiet:
            name, _, now = stage.partition(": ")
            self.update(name, done, total, now)


class FileBar(_Stages):
    """The share of a file that is read, in each pass."""

    def __init__(self) -> None:
        super().__init__(TaskProgressColumn())

    def amount(self, done: int, total: int) -> str:
        """In per cent, without bytes and rows."""
        return f"{100 * done // max(total, 1)} %"


class CellBar(_Stages):
    """Finished cells of a sweep or figure."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __call__(self, done: int, total: int) -> None:
        self.update(self._name, done, total)


class ScenarioBars(_Stages):
    """The stages of every scenario of an experiment."""

    def __init__(self, experiment: AnyPartiesExperiment) -> None:
        super().__init__()
        self._width = max(len(s.name) for s in experiment.scenarios)

    def __call__(self, scenario: str, event: Document) -> None:
        """Show an event of the run or of a party's log; see :func:`vflens.experiments.run.run.run`."""
        named = f"{scenario:<{self._width}}"
        match event.get("event"):
            case "progress":
                self.update(f"{named} {event['stage']}", event["done"], event["total"])
            case "aligned":
                self.say(
                    f"{named} aligned: {counted(event['train'], 'row')} to train, {event['predict']} to "
                    "predict"
                )
            case "prepared" if "clients" in event:  # of a server; data parties log it too
                self.say(
                    f"{named} prepared: {counted(event['rows'], 'row')} to train at "
                    f"{counted(event['clients'], 'client')}"
                )
            case "started" | "finished" as stage:
                self.say(f"{named} {stage}")
