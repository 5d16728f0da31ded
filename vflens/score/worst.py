"""Worst cases behind a mean error: which cells and rows are found, and which of these are nobody else's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from vflens.array import ScaledColumns, in_unit, row_blocks
from vflens.types import Array, ColumnInfo

DEFAULT = 0.05  # of a column's range: the tolerance of a column of which none is stated
EXPOSED = 0.01  # share of rows that are called most exposed
_CHECKED = 500  # rows that are compared with all others
_FEW = 20  # different whole numbers: so many answers are right or wrong, and no lengths
_PEEKED = 2000  # rows that show most columns to take more


class Shares(NamedTuple):
    """Shares of ``cells`` and ``rows`` that are found, and of rows found whose answer fits no other row."""

    cells: float
    rows: float
    unique: float


@dataclass(frozen=True, eq=False)
class Tolerance:
    """How far from the truth an answer counts as found: ``width`` (d,) of scaled columns; of columns of
    finitely many values less than half the way to the next one.
    """

    width: Array

    @classmethod
    def of(cls, truth: Array, stated: Mapping[int, float], finite: Mapping[int, Array]) -> Self:
        """Widths for the columns of ``truth``, by position: ``stated``, scaled; ``finite`` by value."""
        width = np.full(truth.shape[1], DEFAULT)
        for j, letters in finite.items():
            width[j] = np.diff(letters).min() / 2 * (1 - 1e-9) if len(letters) > 1 else 0.0
        for j, tolerance in stated.items():
            width[j] = tolerance
        return cls(width)

    def found(self, values: Array, truth: Array) -> Array:
        """Whether each cell of ``values`` (n, d) is found, bool (n, d)."""
        near: Array = np.abs(values - truth) <= self.width
        return near

    def shares(self, values: Array, truth: Array, everybody: Array) -> Shares:
        """What ``values`` (n, d) find of ``truth`` (n, d), which are rows of ``everybody`` (N, d)."""
        cells = self.found(values, truth)
        rows: Array = np.all(cells, axis=1)
        return Shares(float(cells.mean()), float(rows.mean()), self.unique(values, rows, everybody))

    def best_constant(self, truth: Array) -> Array:
        """The constant (d,) that finds most cells of each column of ``truth`` (n, d)."""
        return np.array([_densest(np.sort(column), w) for column, w in zip(truth.T, self.width, strict=True)])

    def constants(self, truth: Array) -> Array:
        """For each row of ``truth`` (n, d) the constants (n, d) that find most cells of other rows."""
        return _constants(*(np.ascontiguousarray(of, np.float64).tobytes() for of in (self.width, truth)))

    def unique(self, values: Array, found: Array, everybody: Array) -> float:
        """The share of the rows of ``values`` that are ``found`` (n,), and of whose answers no second row of
        ``everybody`` (N, d) is within the tolerance; of more than 500 found rows, by the first 500.
        """
        places = np.flatnonzero(found)
        if not len(places):
            return 0.0
        answers, count = np.unique(values[places[:_CHECKED]], axis=0, return_counts=True)
        alone = [self._within(answer, everybody) == 1 for answer in answers]
        return float(np.average(alone, weights=count) * len(places) / len(values))

    def _within(self, answer: Array, everybody: Array) -> int:
        """How many rows of ``everybody`` are within the tolerance of ``answer`` (d,), column by column."""
        left = everybody
        for j, width in enumerate(self.width):
            left = left[np.abs(left[:, j] - answer[j]) <= width]
        return len(left)


@lru_cache(maxsize=1)  # every attack of an audit is on the same rows
def _constants(width: bytes, truth: bytes) -> Array:
    of = Tolerance(np.frombuffer(width))
    found = from_others(of.best_constant, np.frombuffer(truth).reshape(-1, len(of.width)))
    found.flags.writeable = False
    return found


def from_others(best: Callable[[Array], Array], truth: Array) -> Array:
    """For each row of ``truth`` (n, …) what is ``best`` for the other half of its rows: a guess that is
    fitted to the rows that it is scored on would look better than it is.
    """
    guess = np.empty(truth.shape)
    for half in (0, 1) if len(truth) > 1 else ():
        guess[half::2] = best(truth[1 - half :: 2])
    return guess if len(truth) > 1 else np.broadcast_to(best(truth), truth.shape)


def most_frequent(values: Array) -> float:
    """The share of ``values`` (n,) that the most frequent of other rows is."""

    def mode(those: Array) -> Array:
        letters, count = np.unique(those, return_counts=True)
        frequent: Array = letters[count.argmax()]
        return frequent

    return float((from_others(mode, values) == values).mean())


def letters_of(truth: ScaledColumns, columns: Sequence[ColumnInfo]) -> dict[int, Array]:
    """The values that each column of few takes in ``truth``, ascending and scaled, by position: a column with
    an alphabet, of two values, or of at most 20 whole numbers. An answer stands for the nearest one.
    """
    units = np.ones(len(columns)) if truth.units is None else truth.units
    found = {}
    for j, column in enumerate(columns):
        if column.alphabet is None and (column.pixel is not None or _varies(truth.kept[:_PEEKED, j])):
            continue
        letters = in_unit(np.unique(np.concatenate([np.unique(b[:, j]) for b in row_blocks(truth.kept)])))
        if column.alphabet is not None or _are_few(letters * units[j]):
            found[j] = letters
    return found


def _varies(values: Array) -> bool:
    """Whether ``values`` (n,) take more values than a column of few."""
    return len(np.unique(values)) > _FEW


def _are_few(letters: Array) -> bool:
    """Whether the ascending ``letters`` of a column, in its own unit, are right or wrong, and no lengths."""
    steps = letters - letters[0]
    return len(letters) <= 2 or (len(letters) <= _FEW and bool(np.abs(steps - np.rint(steps)).max() < 1e-6))


def tolerance_of(
    truth: ScaledColumns, columns: Sequence[ColumnInfo], stated: Mapping[str, float]
) -> Tolerance:
    """That of the ``columns`` of ``truth``; ``stated`` by name, in each column's own unit."""
    units = np.ones(len(columns)) if truth.units is None else truth.units
    scaled = {j: stated[c.name] / units[j] for j, c in enumerate(columns) if c.name in stated}
    return Tolerance.of(truth[:1], scaled, letters_of(truth, columns))


def most_exposed(per_row: Array) -> Array:
    """The places of the 1 % of rows, one at least, of least error (n,), the least first."""
    count = max(1, round(EXPOSED * len(per_row)))
    found: Array = np.argsort(per_row, kind="stable")[:count]
    return found


def _densest(ordered: Array, width: float) -> float:
    """The middle of the window of 2·``width`` that holds most of the ``ordered`` values."""
    ends = np.searchsorted(ordered, ordered + 2 * width, side="right")
    first = int((ends - np.arange(len(ordered))).argmax())
    return float((ordered[first] + ordered[ends[first] - 1]) / 2)
