"""What an attack finds of single columns, in each column's own unit: nobody thinks in squares of scaled ones.

The target alone knows what 1 of a scaled column stands for: these figures need its folder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from vflens.experiments.results.folders import PartyRuns
from vflens.experiments.results.results import Result, column_errors, final
from vflens.numerics.measures.advantage import Advantage, advantage
from vflens.plugins.attack import is_blind
from vflens.storage.metrics import Name
from vflens.types import Document

_EXACT = 1 - 1e-6  # of the blind guess's error taken away: what rounding and solvers leave
_SHOWN = 12  # columns of a result, in a table


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
        return not self.right and self.gain > _EXACT

    def _worded(self, value: float) -> str:
        return f"right in {100 * value:.0f} % of rows" if self.right else f"to within ± {in_own_unit(value)}"

    def __str__(self) -> str:
        which = "" if self.right or self._is_exact else " (root mean squared error)"
        return f"{self.column} {self.found}{which}, a blind guess {self.guessed}"


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
    units = _of(run, Name.COLUMN_UNIT, result)
    for error in column_errors(run, result):
        if unit := units.get(error.column):
            own, blind = math.sqrt(error.mse) * unit, math.sqrt(error.blind) * unit
            yield OwnError(result.target, result.attack, error.column, own, blind)


def _shares(run: PartyRuns, result: Result) -> Iterator[OwnError]:
    blind = _of(run, Name.COLUMN_BLIND_RIGHT, result)
    for column, share in _of(run, Name.COLUMN_RIGHT, result, result.attack).items():
        if column in blind:
            yield OwnError(result.target, result.attack, column, share, blind[column], right=True)


def _of(run: PartyRuns, metric: Name, result: Result, attack: str = "") -> dict[str, float]:
    """Column → figure of ``metric`` on the rows of ``result``."""
    place = (attack, result.target, result.scored_set, result.rows)
    return {
        m.column: m.value
        for m in run.metrics(metric)
        if (m.attack, m.target, m.scored_set, m.rows) == place and math.isfinite(m.value)
    }


class WorstCase(NamedTuple):
    """What the most successful attack finds of the rows of ``target``: of ``rows`` the shares of ``cells``
    and ``rows_found`` within the columns' tolerances, and of rows found whose answer fits no other row of the
    table (``unique``); those of the best blind guess, constants or imputation; the advantage over it with its
    95 % interval, of cells as if a row were one; the error of the most exposed 1 % of rows.
    """

    target: str
    attack: str
    scored_set: str
    rows: int
    cells: float
    rows_found: float
    unique: float
    control_cells: float
    control_rows: float
    advantage_cells: Advantage
    advantage_rows: Advantage
    exposed_mse: float

    @property
    def words(self) -> str:
        """It in one sentence."""
        of_rows = f"{100 * self.rows_found:.1f} % of rows whole, {100 * self.unique:.1f} % alone"
        return (
            f"{self.attack} finds {100 * self.cells:.1f} % of cells (a blind guess "
            f"{100 * self.control_cells:.1f} %), {of_rows}; advantage {_interval(self.advantage_cells)}"
        )

    @property
    def json(self) -> Document:
        """It under stable keys; an undefined figure is None."""
        advantages = {
            name: {k: None if math.isnan(v) else v for k, v in found._asdict().items()}
            for name, found in self._asdict().items()
            if isinstance(found, Advantage)
        }
        return {**self._asdict(), **advantages, "words": self.words}


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

    cells, blind = share(Name.CELLS_FOUND, r.attack), share(Name.BLIND_CELLS_FOUND)
    if not cells or not blind:
        return None
    guesses = {m.attack for m in run.metrics(Name.CELLS_FOUND) if is_blind(m.attack)}
    control_cells, control_rows = (
        max([*share(constants), *(value for guess in guesses for value in share(name, guess))])
        for constants, name in (
            (Name.BLIND_CELLS_FOUND, Name.CELLS_FOUND),
            (Name.BLIND_ROWS_FOUND, Name.ROWS_FOUND),
        )
    )
    whole = share(Name.ROWS_FOUND, r.attack)[0]
    return WorstCase(
        target=r.target,
        attack=r.attack,
        scored_set=r.scored_set,
        rows=r.rows,
        cells=cells[0],
        rows_found=whole,
        unique=share(Name.ROWS_UNIQUE, r.attack)[0],
        control_cells=control_cells,
        control_rows=control_rows,
        advantage_cells=advantage(cells[0], control_cells, r.rows),
        advantage_rows=advantage(whole, control_rows, r.rows),
        exposed_mse=share(Name.EXPOSED_MSE, r.attack)[0],
    )


def in_own_unit(value: float) -> str:
    """Two significant digits, without powers of ten where they can be read: "38,000", "1.2", "0.012"."""
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.2g}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"
