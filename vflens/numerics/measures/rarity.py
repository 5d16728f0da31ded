"""Rows of a table in which rare values occur: what is in none of the rows read cannot be found there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from vflens.array import Array

Alike: TypeAlias = Callable[[Array], Array]

RARE = 50  # rows of each value that a draw holds, where the table has so many: they decide
VARYING = 10  # rows that differ from a column's most frequent value: fewer decide nothing of it
_PEEKED = 2000  # rows that show a column's most frequent value


class Rarity(NamedTuple):
    """How many of the ``rows`` of a table are ``differing`` (d,) from each column's most frequent value."""

    rows: int
    differing: Array

    @classmethod
    def of(cls, x: Array) -> Rarity:
        """The counts of the columns ``x`` (n, d)."""
        usual = (_mode(x[:_PEEKED, j]) for j in range(x.shape[1]))
        return cls(len(x), np.array([np.count_nonzero(x[:, j] != v) for j, v in enumerate(usual)]))

    @property
    def deciding(self) -> list[int]:
        """How many rows drawn at random hold 50 that differ, on average; 0 of a column that never varies."""
        return [math.ceil(RARE * self.rows / count) if count else 0 for count in self.differing.tolist()]


def drawn(x: Array, letters: Mapping[int, Array], rows: int, rng: np.random.Generator) -> Array:
    """The places, ascending, of at most ``rows`` rows of ``x`` (n, d), drawn without replacement: at random,
    then up to 50 of each rare value of a column in place of others, at most half of all.

    Values are the ``letters`` of a column of few; of any other column all but its most frequent one count as
    one.
    """
    order = rng.permutation(len(x))
    if len(x) <= rows:
        return np.sort(order)
    first, rest = order[:rows], order[rows:]
    rare = dict.fromkeys(place for found in _lacking(x, letters, first, rest) for place in found.tolist())
    extra = np.array(list(rare)[: rows // 2], dtype=first.dtype)
    return np.sort(np.concatenate([extra, first[: rows - len(extra)]]))


def _lacking(x: Array, letters: Mapping[int, Array], first: Array, rest: Array) -> Iterator[Array]:
    """Rows of the ``rest`` for each value that ``first`` lacks rows of."""
    for j, column in enumerate(x.T):
        for alike in _values(column, letters.get(j)):
            lacks = RARE - np.count_nonzero(alike(column[first]))
            if lacks > 0:
                yield rest[np.flatnonzero(alike(column[rest]))[:lacks]]


def _values(column: Array, letters: Array | None) -> Iterator[Alike]:
    """What tells the rows of each value of a column."""
    if letters is None:
        yield partial(np.not_equal, _mode(column[:_PEEKED]))
    else:
        yield from (partial(np.equal, letter) for letter in letters)


def _mode(values: Array) -> float:
    """The most frequent of ``values`` (n,)."""
    found, count = np.unique(values, return_counts=True)
    return float(found[count.argmax()])
