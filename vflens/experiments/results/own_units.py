"""What an attack finds of single columns, in each column's own unit: nobody thinks in squares of scaled ones.

The target alone knows what 1 of a scaled column stands for: these figures need its folder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

from vflens.experiments.outcome.words import in_own_unit
from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.experiments.results.results import (
    Result,
    column_errors,
    final,
    half_width,
    is_baseline,
    results,
)
from vflens.numerics.measures.advantage import Advantage, advantage
from vflens.plugins.attack import is_blind
from vflens.score.worst import Shares
from vflens.storage.json_file import Rows, Share, Size, Word
from vflens.storage.metrics import Name
from vflens.types import Document

_EXACT = 1 - 1e-6  # of the blind guess's error taken away: what rounding and solvers leave
IMPUTATION = "imputation"  # the attack that guesses from the adversary's own columns
_SHOWN = 12  # columns of a result, in a table
#: Shares that an attack finds → the same of the best constants.
_SHARES = {
    Name.CELLS_FOUND: Name.BLIND_CELLS_FOUND,
    Name.ROWS_FOUND: Name.BLIND_ROWS_FOUND,
    Name.ROWS_UNIQUE: Name.BLIND_ROWS_UNIQUE,
}


class OwnError(NamedTuple):
    """One column of ``target``: the root mean squared error of ``attack`` in the column's own unit, beside
    that of the best blind guess; of a column with finitely many values (``right``) the shares of right ones.
    """

    target: str
    attack: str
    column: str
    error: float
    blind: float
    right: bool = False

    @property
    def gain(self) -> float:
        """The share of the blind guess's error that the attack takes away: 1 is exact, 0 no better."""
        wrong, blind = (1 - self.error, 1 - self.blind) if self.right else (self.error, self.blind)
        return 1 - wrong / blind if blind else 0.0

    @property
    def found(self) -> str:
        """The attack's figure in words."""
        return "exactly" if self._is_exact else self._worded(self.error)

    @property
    def guessed(self) -> str:
        """The blind guess's figure in words."""
        return self._worded(self.blind)

    @property
    def _is_exact(self) -> bool:
        return not self.right and is_exact(self.error, self.blind)

    def _worded(self, value: float) -> str:
        return f"right in {100 * value:.0f} % of rows" if self.right else f"to within ± {in_own_unit(value)}"

    def __str__(self) -> str:
        which = "" if self.right or self._is_exact else " (root mean squared error)"
        return f"{self.column} {self.found}{which}, a blind guess {self.guessed}"


def is_exact(error: float, blind: float) -> bool:
    """Whether a root mean squared ``error`` is that of rounding and solvers, beside the ``blind`` guess's."""
    return error < (1 - _EXACT) * blind


def best_own_errors(run: PartyRuns) -> tuple[OwnError, ...]:
    """:func:`own_errors` of the most successful attack on each target."""
    best = {r.target: r for r in reversed(final(run))}
    return tuple(error for r in best.values() for error in own_errors(run, r))


def own_errors(run: PartyRuns, result: Result) -> tuple[OwnError, ...]:
    """The columns of ``result`` of which it takes most of the blind error away, best first; at most 12.

    Columns that it finds no better than blind, constant ones and pixels are left out.
    """
    found = [*_shares(run, result), *_distances(run, result)]
    named = {error.column: error for error in reversed(found)}  # of a finite column the share
    better = sorted((e for e in named.values() if e.gain > 0), key=lambda e: (-e.gain, e.column))
    return tuple(better[:_SHOWN])


def _distances(run: PartyRuns, result: Result) -> Iterator[OwnError]:
    units = figures_of(run, Name.COLUMN_UNIT, result)
    for error in column_errors(run, result):
        if unit := units.get(error.column):
            own, blind = math.sqrt(error.mse) * unit, math.sqrt(error.blind) * unit
            yield OwnError(result.target, result.attack, error.column, own, blind)


def _shares(run: PartyRuns, result: Result) -> Iterator[OwnError]:
    blind = figures_of(run, Name.COLUMN_BLIND_RIGHT, result)
    for guess in {m.attack for m in run.metrics(Name.COLUMN_RIGHT) if is_baseline(m, result.adversary)}:
        imputed = figures_of(run, Name.COLUMN_RIGHT, result, guess)
        blind = {column: max(share, imputed.get(column, 0.0)) for column, share in blind.items()}
    for column, share in figures_of(run, Name.COLUMN_RIGHT, result, result.attack).items():
        if column in blind:
            yield OwnError(result.target, result.attack, column, share, blind[column], right=True)


def figures_of(run: PartyRuns, metric: Name, result: Result, attack: str = "") -> dict[str, float]:
    """Column → figure of ``metric`` on the rows of ``result``."""
    place = (attack, result.target, result.scored_set, result.rows)
    return {
        m.column: m.value
        for m in run.metrics(metric)
        if (m.attack, m.target, m.scored_set, m.rows) == place and math.isfinite(m.value)
    }


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """What the most successful attack finds of the rows of ``target``: of ``rows`` the shares of ``cells``
    and ``rows_found`` within the columns' tolerances, and of rows found whose answer fits no other row of the
    table (``unique``); the same three of the best blind guess, constants or imputation, each by the best for
    it; the error of the most exposed 1 % of rows.
    """

    target: str
    attack: Word
    scored_set: Word
    rows: Rows
    cells: Share = 0.0
    rows_found: Share
    unique: Share
    control_cells: Share = 0.0
    control_rows: Share
    control_unique: Share
    exposed_mse: Size = 0.0

    def __post_init__(self) -> None:
        for alone, whole in (("unique", "rows_found"), ("control_unique", "control_rows")):
            if getattr(self, alone) > getattr(self, whole) + 1e-9:
                raise ValueError(f"{alone}: it is at most {whole}")

    @classmethod
    def of(
        cls, place: tuple[str, str, str, int], found: Shares, control: Shares, exposed_mse: float
    ) -> WorstCase:
        """Of ``place``, target, attack, scored set and rows: what is ``found``, and by the best blind guess,
        the ``control``.
        """
        names = (f.name for f in fields(cls))
        figures: Document = dict(zip(names, (*place, *found, *control, exposed_mse), strict=True))
        return cls(**figures)

    @property
    def advantage_cells(self) -> Advantage:
        """The advantage over the guess with its 95 % interval, of cells as if a row were one."""
        return advantage(self.cells, self.control_cells, self.rows)

    @property
    def words(self) -> str:
        """It in one sentence."""
        of_cells, of_rows, alone = (
            f"{100 * found:.1f} % {what} (a blind guess {100 * guess:.1f} %)"
            for found, what, guess in (
                (self.cells, "of cells", self.control_cells),
                (self.rows_found, "of rows whole", self.control_rows),
                (self.unique, "alone", self.control_unique),
            )
        )
        advantage_words = f"advantage in cells {_interval(self.advantage_cells)}"
        return f"{self.attack} finds {of_cells}, {of_rows}, {alone}; {advantage_words}"

    @property
    def json(self) -> Document:
        """It under stable keys; an undefined figure is None."""
        of_rows = advantage(self.rows_found, self.control_rows, self.rows)
        advantages = {
            name: {k: None if math.isnan(v) else v for k, v in found._asdict().items()}
            for name, found in (("advantage_cells", self.advantage_cells), ("advantage_rows", of_rows))
        }
        return {**vars(self), **advantages, "words": self.words}


def _interval(found: Advantage) -> str:
    if math.isnan(found.value):
        return "undefined"
    return f"{found.value:.2f} ({found.low:.2f} … {found.high:.2f})"


def worst_cases(run: PartyRuns) -> tuple[WorstCase, ...]:
    """Of the most successful attack on each target and scored set, where the columns are no pixels."""
    best = {(r.target, r.scored_set): r for r in reversed(final(run)) if not is_blind(r.attack)}
    return tuple(case for r in best.values() if (case := _worst_case(run, r)) is not None)


def _worst_case(run: PartyRuns, r: Result) -> WorstCase | None:
    def share(name: Name, attack: str = "") -> list[float]:
        place = (attack, r.target, r.scored_set, r.rows)
        return [m.value for m in run.metrics(name) if (m.attack, m.target, m.scored_set, m.rows) == place]

    if not share(Name.CELLS_FOUND, r.attack) or not share(Name.BLIND_ROWS_UNIQUE):
        return None
    guesses = {m.attack for m in run.metrics(Name.CELLS_FOUND) if is_baseline(m, r.adversary)}
    control = (
        max([*share(constants), *(value for guess in guesses for value in share(name, guess))])
        for name, constants in _SHARES.items()
    )
    found = Shares(*(share(name, r.attack)[0] for name in _SHARES))
    place = (r.target, r.attack, r.scored_set, r.rows)
    return WorstCase.of(place, found, Shares(*control), share(Name.EXPOSED_MSE, r.attack)[0])


class FoundColumn(NamedTuple):
    """Of ``rows`` rows of ``target`` the share of which ``attack`` finds the cell of ``column`` to within
    ``tolerance``, in the column's own unit; that of the constant that finds most (``blind``), and of
    imputation, None where it did not run.
    """

    attack: str
    target: str
    scored_set: str
    rows: int
    column: str
    found: float
    blind: float
    imputation: float | None
    tolerance: float


def found_columns(run: PartyRuns) -> tuple[FoundColumn, ...]:
    """Of every attack at its last milestone, but blind ones; none of pixels and of older runs."""
    return tuple(found for r in final(run) if not is_blind(r.attack) for found in _found_of(run, r))


def _found_of(run: PartyRuns, r: Result) -> Iterator[FoundColumn]:
    blind, tolerance = figures_of(run, Name.COLUMN_BLIND_FOUND, r), figures_of(run, Name.COLUMN_TOLERANCE, r)
    imputed = figures_of(run, Name.COLUMN_FOUND, r, IMPUTATION)
    place = (r.attack, r.target, r.scored_set, r.rows)
    for column, share in figures_of(run, Name.COLUMN_FOUND, r, r.attack).items():
        if column in blind and column in tolerance:
            yield FoundColumn(
                *place,
                column=column,
                found=share,
                blind=blind[column],
                imputation=imputed.get(column),
                tolerance=tolerance[column],
            )


class ColumnAverage(NamedTuple):
    """The root mean squared error of ``attack`` on ``column``, in its own unit, with the ends of its 95 %
    interval over ``rows`` rows, and that of the best blind guess.
    """

    attack: str
    target: str
    scored_set: str
    rows: int
    column: str
    error: float
    low: float
    high: float
    blind: float

    @classmethod
    def of(
        cls, place: tuple[str, str, str, int, str], mse: float, stderr: float, *, blind: float, unit: float
    ) -> ColumnAverage:
        """From squared errors of the scaled column: ``mse``, its ``stderr`` and that of a ``blind`` guess."""
        ends = (mse, max(0.0, mse - half_width(stderr)), mse + half_width(stderr), blind)
        error, low, high, guess = (math.sqrt(square) * unit for square in ends)
        return cls(*place, error=error, low=low, high=high, blind=guess)


def column_averages(run: PartyRuns) -> Iterator[ColumnAverage]:
    """Of every attack at its last milestone, but blind ones; none of pixels and of older runs."""
    for r in (r for r in final(run) if not is_blind(r.attack)):
        stderr, units = (
            figures_of(run, Name.COLUMN_MSE_STDERR, r, r.attack),
            figures_of(run, Name.COLUMN_UNIT, r),
        )
        for e in column_errors(run, r):
            if e.column in stderr and e.column in units:
                place = (r.attack, r.target, r.scored_set, r.rows, e.column)
                figures = {"blind": e.blind, "unit": units[e.column]}
                yield ColumnAverage.of(place, e.mse, stderr[e.column], **figures)


@dataclass(frozen=True)
class ColumnBits:
    """Entropy in bits of a finite column: ``blind`` H(X), and H(X | X̂) of an attack."""

    column: str
    attack: str
    bits: float
    blind: float


def column_bits(run: PartyRuns, target: str) -> tuple[ColumnBits, ...]:
    """For each finite column of ``target`` the attack that leaves the fewest bits, at its last milestone."""
    last = max((r.rows for r in results(run) if r.target == target), default=0)
    here = [m for m in run.metrics(Name.COLUMN_CONDITIONAL_ENTROPY) if (m.target, m.rows) == (target, last)]
    blind = {
        m.column: m.value for m in run.metrics(Name.COLUMN_ENTROPY) if (m.target, m.rows) == (target, last)
    }
    best: dict[str, Metric] = {}
    for m in here:
        if m.column in blind and (m.column not in best or m.value < best[m.column].value):
            best[m.column] = m
    return tuple(ColumnBits(c, m.attack, m.value, blind[c]) for c, m in best.items())
