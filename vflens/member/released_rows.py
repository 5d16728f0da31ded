"""Prediction rows that were released, looked up by position."""

import numpy as np

from vflens.errors import StateError
from vflens.types import Array, Exchange, sealed


class RowLog:
    """Prediction rows released under one model version, looked up by position.

    Args:
        positions: all rows are below; it grows where they are not.
        rows: how many may come. Memory for so many is reserved at first, and used as they come: growing
            would copy all earlier rows while a request waits.
    """

    def __init__(self, positions: int = 0, rows: int = 0) -> None:
        self.exchanges: set[Exchange] = set()
        self._place, self._room = np.full(positions, -1, np.int32), rows
        self._values = np.zeros((0, 0))
        self._order = np.zeros(0, np.int32)
        self._count = 0

    def has(self, rows: Array) -> Array:
        """Which of ``rows`` were released, bool (n,)."""
        found: Array = self._places(rows) >= 0
        return found

    def values(self, rows: Array) -> Array:
        """The released values (n, k) of ``rows``.

        Raises:
            StateError: one of them was not released.
        """
        places = self._places(rows)
        if (places < 0).any():
            raise StateError("values of rows that were not released yet: ask for them first")
        found: Array = self._values.take(places, axis=0)
        return found

    def order(self) -> Array:
        """The released rows, int32 (n,), in order of release; read-only."""
        return sealed(self._order[: self._count])

    def add(self, rows: Array, values: Array, exchange: Exchange) -> None:
        """Keep ``values`` (n, k) of ``rows``, all new."""
        end = self._count + len(rows)
        if end > len(self._values):
            self._grow(max(end, 2 * self._count, self._room), values)
        self._make_room(int(rows.max(initial=-1)) + 1)
        self._values[self._count : end] = values
        self._order[self._count : end] = rows
        self._place[rows] = np.arange(self._count, end)
        self._count = end
        self.exchanges.add(exchange)

    def _places(self, rows: Array) -> Array:
        """Where the values of ``rows`` stand, −1 for those that were not released."""
        try:
            places: Array = self._place.take(rows)
        except IndexError:  # rows above all that were released
            places = np.append(self._place, -1).take(np.minimum(rows, len(self._place)))
        return places

    def _make_room(self, size: int) -> None:
        """For rows below ``size``."""
        if size > len(self._place):
            missing = np.full(max(size, 2 * len(self._place)) - len(self._place), -1, np.int32)
            self._place = np.concatenate([self._place, missing])

    def _grow(self, size: int, like: Array) -> None:
        values, order = np.empty((size, like.shape[1]), like.dtype), np.empty(size, np.int32)
        if self._count:
            values[: self._count], order[: self._count] = (
                self._values[: self._count],
                self._order[: self._count],
            )
        self._values, self._order = values, order
