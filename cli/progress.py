"""Progress bars with remaining time, on standard error; silent where that is no terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

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

from cli.output import note

if TYPE_CHECKING:  # the federation's configuration, which a bar does not need
    from experiments.config import Experiment


class _Bars:
    """Named bars that appear when they are first told of."""

    def __init__(self, count: ProgressColumn | None = None) -> None:
        console = Console(stderr=True)
        count = count or MofNCompleteColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
        self._bars = Progress(*columns, console=console, disable=not sys.stderr.isatty())
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def update(self, name: str, done: int, total: int) -> None:
        """``done`` of ``total`` of ``name``."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total)
        self._bars.update(self._tasks[name], completed=done, total=total)


class StageBar(_Bars):
    """The stages of one party; where there is no terminal, at most ten lines a stage."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__()
        self._quiet = quiet
        self._tenths: dict[str, int] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """See :class:`coordinator.coordinator.Progress`."""
        if self._quiet:
            return
        if sys.stderr.isatty():
            self.update(stage, done, total)
        elif 10 * done // total > self._tenths.get(stage, 0):
            self._tenths[stage] = 10 * done // total
            note(f"{stage} {done}/{total}")


class FileBar(_Bars):
    """How much of a file has been read, pass by pass."""

    def __init__(self) -> None:
        super().__init__(TaskProgressColumn())


class CellBar(_Bars):
    """Finished cells of a sweep or figure; where there is no terminal, at most ten lines."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._tenth = name, 0

    def __call__(self, done: int, total: int) -> None:
        """See :class:`experiments.cells.Pool`."""
        if sys.stderr.isatty():
            self.update(self._name, done, total)
        elif total and 10 * done // total > self._tenth:
            self._tenth = 10 * done // total
            note(f"{self._name} {done}/{total}")


class ScenarioBars(_Bars):
    """The stages of every scenario of an experiment."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self._width = max(len(s.name) for s in experiment.scenarios)

    def __call__(self, scenario: str, event: dict[str, Any]) -> None:
        """Take an event that a party logged."""
        if event.get("event") == "progress":
            self.update(f"{scenario:<{self._width}} {event['stage']}", event["done"], event["total"])
