"""What an attack finds of single columns, in each column's own unit: nobody thinks in squares of scaled ones.

The target alone knows what 1 of a scaled column stands for: these figures need its folder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from vflens.experiments.results.folders import PartyRuns
from vflens.experiments.results.results import Result, column_errors, final
from vflens.storage.metrics import Name

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


def in_own_unit(value: float) -> str:
    """Two significant digits, without powers of ten where they can be read: "38,000", "1.2", "0.012"."""
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.2g}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"
