"""Path restriction on an ensemble of trees (Luo et al., 2021, ICDE, §IV-B and Algorithm 1).

The adversary knows the trees, its own columns and what was released. Its own columns rule out leaves; in
Algorithm 1 a class rules out others. Here the released score is a sum over trees, and the trees share
columns: only those choices of one leaf per tree agree with it whose values sum to the score and whose boxes
have a point in common. All of them are searched depth first, over boxes of the unknown columns: of every box
those leaves are dropped that lie outside of it, or with which no leaves of the other trees reach the sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflens.array import Array

_MOST_LEAVES = 5_000_000  # that are compared with boxes and sums: a second


@dataclass(frozen=True, eq=False)
class AgreeingLeaves:
    """The leaves of one tree that agree with the adversary's own columns.

    ``leaves`` int (C,) are their places in the tree, ``low`` and ``high`` (C, d) the half-open boxes of
    the unknown columns that lead there, ``effects`` (C, m) what each adds to the m released sums.
    """

    leaves: Array
    low: Array
    high: Array
    effects: Array


@dataclass(frozen=True, eq=False)
class Restricted:
    """What the released sums of one row leave.

    ``low`` and ``high`` (d,) enclose every choice of leaves that agrees with them; ``found`` is their number,
    and ``leaves`` (T,) is one of them, drawn evenly, or None. A search that stopped early, or that found
    none, has ``complete`` False and the whole ranges.
    """

    low: Array
    high: Array
    leaves: Array | None
    found: int
    complete: bool


def restricted(
    trees: Sequence[AgreeingLeaves],
    target: Array,
    low: Array,
    high: Array,
    *,
    tolerance: float,
    most: int,
    rng: np.random.Generator,
) -> Restricted:
    """The row whose released sums are ``target`` (m,), with unknown columns from ``low`` to ``high`` (d,).

    Args:
        trees: of each tree the leaves that are left, at least one.
        target: sums over trees of the effects of the true leaves.
        low: least values.
        high: largest values.
        tolerance: by which a sum may miss its target: released scores are rounded.
        most: boxes that are looked at.
        rng: draws the choice.
    """
    search = _Search(trees, target, tolerance, rng)
    complete = search.run(low, np.nextafter(high, np.inf), most) and search.found > 0
    if not complete:
        return Restricted(low, high, search.chosen, search.found, complete=False)
    return Restricted(
        search.least, np.minimum(search.largest, high), search.chosen, search.found, complete=True
    )


class _Search:
    """The leaves of all trees, one tree behind the other: K in sum; places (A,) of those that are left."""

    def __init__(
        self, trees: Sequence[AgreeingLeaves], target: Array, tolerance: float, rng: np.random.Generator
    ) -> None:
        self._trees = len(trees)
        self._tree = np.repeat(np.arange(self._trees), [len(tree.leaves) for tree in trees])
        self._leaves = np.concatenate([tree.leaves for tree in trees])
        self._low, self._high = (np.vstack([getattr(t, end) for t in trees]) for end in ("low", "high"))
        self._effects = np.vstack([tree.effects for tree in trees])
        self._target, self._tolerance, self._rng = target, tolerance, rng
        self._compared = 0
        self.least, self.largest = np.full(self._low.shape[1], np.inf), np.full(self._low.shape[1], -np.inf)
        self.found = 0
        self.chosen: Array | None = None

    def run(self, low: Array, high: Array, most: int) -> bool:
        """Whether the search of the box from ``low`` to below ``high`` ends within ``most`` boxes."""
        waiting = [(np.arange(len(self._tree)), np.zeros(0, int), low, high)]
        while waiting and most and self._compared < _MOST_LEAVES:
            most -= 1
            *both, low, high = waiting.pop()
            narrowed = self._narrowed(np.sort(np.concatenate(both)), low, high)
            if narrowed is None:
                continue
            left, low, high = narrowed
            counts = np.bincount(self._tree[left])
            if counts.max() == 1:
                self._keep(left, low, high)
                continue
            of_tree = self._tree[left] == np.where(counts > 1, counts, len(left) + 1).argmin()
            waiting += [(left[~of_tree], leaf, low, high) for leaf in left[of_tree, None]]
        return not waiting

    def _narrowed(self, left: Array, low: Array, high: Array) -> tuple[Array, Array, Array] | None:
        """The leaves that are left in a box, and the part of it that they allow; None if a tree has none."""
        count = -1
        while count != (count := len(left)):
            self._compared += count
            left = left[self._reach_the_sum(left)]
            meet = np.maximum(low, self._low[left]) < np.minimum(high, self._high[left])
            left = left[meet.all(axis=1)]
            begins = self._begins(left)
            if len(begins) < self._trees:
                return None
            low = np.maximum(low, np.minimum.reduceat(self._low[left], begins, axis=0).max(axis=0))
            high = np.minimum(high, np.maximum.reduceat(self._high[left], begins, axis=0).min(axis=0))
        return left, low, high

    def _begins(self, left: Array) -> Array:
        """The place of the first leaf of each tree that has one."""
        found: Array = np.flatnonzero(np.diff(self._tree[left], prepend=-1))
        return found

    def _reach_the_sum(self, left: Array) -> Array:
        """Which leaves (A,) reach the target with the least or largest effects of the other trees."""
        effects, begins, tree = self._effects[left], self._begins(left), self._tree[left]
        lowest = np.minimum.reduceat(effects, begins, axis=0)
        highest = np.maximum.reduceat(effects, begins, axis=0)
        others_low, others_high = lowest.sum(axis=0) - lowest, highest.sum(axis=0) - highest
        due = self._target - effects
        above = due >= others_low[tree] - self._tolerance
        reached: Array = (above & (due <= others_high[tree] + self._tolerance)).all(axis=1)
        return reached

    def _keep(self, left: Array, low: Array, high: Array) -> None:
        """Count a choice; it replaces the drawn one with equal odds."""
        self.least, self.largest = np.minimum(self.least, low), np.maximum(self.largest, high)
        self.found += 1
        if self._rng.random() < 1 / self.found:
            self.chosen = self._leaves[left]
