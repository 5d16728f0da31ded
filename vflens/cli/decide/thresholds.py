"""``--fail-if``, ``--fail-if-beats-blind`` and ``--junit``: options of the commands that measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from vflens.errors import ConfigError

if TYPE_CHECKING:  # they load the record of runs
    from vflens.experiments.evidence.thresholds import Outcome, Threshold
    from vflens.experiments.outcome.finding import Findings
    from vflens.types import Document

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'COLUMN within NUMBER > SHARE %'",
        help="end with code 15 if an attack finds more of a column's rows, with 16 if too few rows decide "
        "it: 'income within 5 > 10 %', 'job=clerk > 80 %', 'age within 2 > blind' (repeatable)",
    ),
]
FailIfBeatsBlind = Annotated[
    bool, typer.Option("--fail-if-beats-blind", help="the same if an attack is better than a blind guess")
]
JUnit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="write the outcomes of thresholds as JUnit XML")
]

TableFile = Annotated[
    Path | None,
    typer.Option(
        "--table", metavar="FILE", help="also write what attacks found as one table, .csv or .parquet"
    ),
]


def check_table(file: Path | None) -> None:
    """Refuse another file than .csv and .parquet, before the work."""
    if file is not None:
        from vflens.experiments.outcome import table

        table.check_table(file)


def write_table(file: Path | None, evidence: Callable[[], Sequence[Findings]]) -> Document:
    """Write the table where one is asked for; its name for a command's JSON."""
    if file is None:
        return {}
    from vflens.experiments.outcome import table

    table.write_table(file, evidence())
    return {"table": str(file)}


class Gate(NamedTuple):
    """What a command is asked to refuse; ``tolerance`` has the distances that its thresholds state."""

    thresholds: tuple[Threshold, ...]
    tolerance: Mapping[str, float]
    beats_blind: bool
    junit: Path | None

    @property
    def open(self) -> bool:
        """Whether nothing is asked."""
        return not (self.thresholds or self.beats_blind)

    def check_columns(self, columns: Callable[[], Sequence[str]]) -> None:
        """Refuse a column that is none of ``columns()``, before the work.

        Raises:
            ConfigError: it names the nearest ones.
        """
        if not self.thresholds:
            return
        from vflens.experiments.evidence.thresholds import check_columns

        check_columns(self.thresholds, columns())

    def judged(self, evidence: Callable[[], Sequence[Findings]]) -> Judged:
        """The outcomes from ``evidence()``, which are also written as JUnit XML.

        Raises:
            ConfigError: the evidence has no such column.
            StorageError: the file cannot be written.
        """
        if self.open:
            return Judged(())
        from vflens.experiments.evidence.junit import write_junit
        from vflens.experiments.evidence.thresholds import judge

        outcomes = judge(self.thresholds, self.beats_blind, evidence())
        if self.junit is not None:
            write_junit(self.junit, outcomes)
        return Judged(outcomes)


class Judged(NamedTuple):
    """What is known of the thresholds of a command."""

    outcomes: tuple[Outcome, ...]

    @property
    def json(self) -> Document:
        """For a command's JSON: nothing without thresholds."""
        return {"thresholds": [o.json for o in self.outcomes]} if self.outcomes else {}

    @property
    def text(self) -> str:
        """A line for each outcome."""
        return "".join(f"\n{o.sentence}" for o in self.outcomes)

    def enforce(self) -> None:
        """End the command after its results.

        Raises:
            ThresholdError: a threshold is broken.
            UndecidedError: one is not decided, and none is broken.
        """
        if not self.outcomes:
            return
        from vflens.experiments.evidence.thresholds import refusal

        if (error := refusal(self.outcomes)) is not None:
            raise error


def gate(fail_if: Sequence[str] | None, beats_blind: bool, junit: Path | None) -> Gate:
    """What the options ask for, checked before the work.

    Raises:
        ConfigError: a text is no threshold, or there is nothing to write as JUnit XML, or no place for it.
    """
    if not fail_if and not beats_blind:
        if junit is not None:
            raise ConfigError(
                "--junit writes outcomes of thresholds: give --fail-if or --fail-if-beats-blind"
            )
        return Gate((), {}, False, None)
    if junit is not None and (not junit.parent.is_dir() or (junit.exists() and not junit.is_file())):
        shown = "names no file" if junit == Path() else junit  # an empty text is this folder, as a path
        raise ConfigError(f"--junit {shown}: give the name of a file in a folder that is there")
    from vflens.experiments.evidence.thresholds import read_threshold, tolerances

    thresholds = tuple(map(read_threshold, fail_if or ()))
    return Gate(thresholds, tolerances(thresholds), beats_blind, junit)
