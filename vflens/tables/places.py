"""Where the rows of a party's table stand in its file; no identifier and no cell enters a message.

A message may be sent on, to a ticket or another party: it counts rows and gives the number of the first. What
it has ``shown`` is for the owner, who asks for it with ``--show-ids``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflens.errors import DataError
from vflens.types import Array

_SHOWN = 20  # rows


@dataclass(frozen=True, eq=False)
class Places:
    """``numbers`` int32 (n,) of data rows, counted from 1 below the header; their ``ids`` (n,), bytes."""

    numbers: Array
    ids: Array

    @classmethod
    def of(cls, ids: Array) -> Places:
        """Places of all rows of a file."""
        return cls(np.arange(1, len(ids) + 1, dtype=np.int32), ids)

    def kept(self, rows: Array) -> Places:
        """Places of these rows, bool (n,)."""
        return Places(self.numbers[rows], self.ids[rows])

    def refusal(
        self, bad: Array, before: str, after: str, cells: Sequence[Any] | Array | None = None
    ) -> DataError:
        """The refusal of the rows ``bad``, bool (n,), at least one: their place between two texts.

        ``cells`` (n,) are those refused; None: the identifiers say enough.
        """
        at = np.flatnonzero(bad)
        shown = [repr(self.ids[i].decode()) for i in at[:_SHOWN]]
        if cells is not None:
            shown = [f"{name}: {cells[i]}" for name, i in zip(shown, at.tolist(), strict=False)]
        return DataError(f"{before} {data_rows(self.numbers[at])}{after}", shown=shown)


def repeats_earlier(ids: Array) -> Array:
    """Which of ``ids`` (n,) occurred before, bool (n,)."""
    ordered = np.sort(ids)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.zeros(len(ids), bool)
    repeats = np.full(len(ids), True)
    repeats[np.unique(ids, return_index=True)[1]] = False
    return repeats


def data_rows(numbers: Array) -> str:
    """The data rows ``numbers`` (n,), at least one, in words."""
    return in_rows(int(numbers[0]), len(numbers))


def in_rows(first: int, count: int) -> str:
    """``count`` data rows, the ``first`` by its number."""
    return f"data row {first}" + (f" and {count - 1:,} more" if count > 1 else "")
