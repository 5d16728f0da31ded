"""Scaling of columns to [0, 1]: by declared bounds, else by the extremes of the training rows.

Values outside are clipped and counted: the attacks' theory holds in the box only, and without clipping a
third of wine's prediction rows would be outside.

===============================  ====================================================================
column                           scaled
===============================  ====================================================================
declared bounds                  (x − low) / (high − low), for any training rows
no declared bounds               the same with the least and greatest training value
constant in training, no bounds  0 for every x; an x other than the constant counts as clipped
===============================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vflens.array import let_go, row_blocks
from vflens.errors import DataError
from vflens.types import Array, ColumnInfo
from vflens.words import counted

_CHUNK = 1 << 14  # rows


@dataclass(frozen=True, eq=False)
class Scaler:
    """The affine map of each of d columns; ``low`` ≤ ``high`` are float64 (d,) in the file's units."""

    raw: tuple[ColumnInfo, ...]
    low: Array
    high: Array

    @classmethod
    def fit(cls, columns: Sequence[ColumnInfo], features: Array, rows: Array | None = None) -> Scaler:
        """The scaler of ``columns`` for the training ``rows`` (default: all) of ``features``, finite (n, d);
        at least one.

        Raises:
            DataError: no training rows, another number of columns, a low bound above its high one, or a range
                that overflows.
        """
        rows = np.arange(len(features)) if rows is None else rows
        if features.ndim != 2 or features.shape[1] != len(columns) or len(rows) == 0:
            raise DataError(
                f"scaling {counted(len(columns), 'column')} needs training rows of that width, not "
                f"{features[rows].shape}"
            )
        low, high = _extremes(features, rows)
        low = np.array([v if c.low is None else c.low for c, v in zip(columns, low, strict=True)], np.float64)
        high = np.array(
            [v if c.high is None else c.high for c, v in zip(columns, high, strict=True)], np.float64
        )
        if (low > high).any():
            j = int(np.argmax(low > high))
            raise DataError(
                f"column {columns[j].name!r}: its low bound is above its high one: correct its bounds"
            )
        with np.errstate(over="ignore"):
            endless = ~np.isfinite(high - low)
        if endless.any():
            j = int(np.argmax(endless))
            raise DataError(
                f"column {columns[j].name!r}: its least and largest number are farther apart than any number "
                "is large: declare bounds, or rescale it"
            )
        return cls(tuple(columns), low, high)

    @classmethod
    def of_bounds(cls, column: ColumnInfo) -> Scaler:
        """The scaler of one ``column`` with declared bounds."""
        assert column.low is not None
        assert column.high is not None
        return cls((column,), np.array([column.low]), np.array([column.high]))

    def transform(self, x: Array) -> tuple[Array, int]:
        """``x`` (n, d) scaled and clipped to [0, 1], and the number of values outside.

        Raises:
            DataError: another number of columns.
        """
        if x.ndim != 2 or x.shape[1] != len(self.raw):
            raise DataError(
                f"the scaler has {counted(len(self.raw), 'column')}, the rows have shape {x.shape}"
            )
        scaled = np.clip(x, self.low, self.high)
        clipped = int(np.count_nonzero(scaled != x))
        return _stretched(scaled, self.low, self.high), clipped

    def transform_in_place(self, x: Array) -> int:
        """:meth:`transform` of ``x`` in place; the number of values outside."""
        clipped = 0
        for part in row_blocks(x):
            part[:], count = self.transform(part)
            clipped += count
        return clipped

    def inverse(self, x: Array) -> Array:
        """From [0, 1] (n, d) back to the file's units; a clipped value comes back as its bound."""
        raw: Array = self.low + x * (self.high - self.low)
        return raw

    def columns(self) -> tuple[ColumnInfo, ...]:
        """The public metadata in scaled units: bounds 0 and 1, alphabets mapped by :meth:`transform`."""
        return tuple(
            replace(c, low=0.0, high=1.0, alphabet=self._alphabet(j, c)) for j, c in enumerate(self.raw)
        )

    def _alphabet(self, j: int, column: ColumnInfo) -> tuple[float, ...] | None:
        if column.alphabet is None:
            return None
        values = np.clip(np.array(column.alphabet), self.low[j], self.high[j])
        return tuple(np.unique(_stretched(values, self.low[j], self.high[j])).tolist())


def _extremes(features: Array, rows: Array) -> tuple[Array, Array]:
    """Least and greatest (d,) of ``rows``, chunk by chunk: a copy would be as large as the table."""
    low, high = features[rows[0]], features[rows[0]]
    for start in range(0, len(rows), _CHUNK):
        part = features[rows[start : start + _CHUNK]]
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        let_go(features)
    return low, high


def _stretched(x: Array, low: Array, high: Array) -> Array:
    """Scale ``x`` from ``low`` and ``high`` to [0, 1], in place; 0 where they are equal."""
    x -= low
    width = high - low
    np.divide(x, width, out=x, where=width > 0)
    return x
