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
        most: boxes that are looked at; the work is proportional to it.
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
    """The leaves of all trees, one tree behind the other: K in sum."""

    def __init__(
        self, trees: Sequence[AgreeingLeaves], target: Array, tolerance: float, rng: np.random.Generator
    ) -> None:
        sizes = [len(tree.leaves) for tree in trees]
        self._begins, self._tree = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(trees)), sizes)
        self._leaves = np.concatenate([tree.leaves for tree in trees])
        self._low, self._high = (np.vstack([getattr(t, end) for t in trees]) for end in ("low", "high"))
        self._effects = np.vstack([tree.effects for tree in trees])
        self._target, self._tolerance, self._rng = target, tolerance, rng
        self.least, self.largest = np.full(self._low.shape[1], np.inf), np.full(self._low.shape[1], -np.inf)
        self.found = 0
        self.chosen: Array | None = None

    def run(self, low: Array, high: Array, most: int) -> bool:
        """Whether the search of the box from ``low`` to below ``high`` ends within ``most`` boxes."""
        waiting = [(np.ones(len(self._tree), bool), low, high)]
        while waiting and most:
            most -= 1
            narrowed = self._narrowed(*waiting.pop())
            if narrowed is None:
                continue
            alive, low, high = narrowed
            left = np.add.reduceat(alive, self._begins)
            if left.max() == 1:
                self._keep(alive, low, high)
                continue
            tree = int(np.where(left > 1, left, len(alive) + 1).argmin())
            of_tree = self._tree == tree
            for leaf in np.flatnonzero(alive & of_tree):
                only = alive & ~of_tree
                only[leaf] = True
                waiting.append((only, low, high))
        return not waiting

    def _narrowed(self, alive: Array, low: Array, high: Array) -> tuple[Array, Array, Array] | None:
        """The leaves that are left in a box, and the part of it that they allow; None if a tree has none."""
        count = -1
        while count != (count := int(alive.sum())):
            alive = alive & self._reach_the_sum(alive)
            alive &= (np.maximum(low, self._low) < np.minimum(high, self._high)).all(axis=1)
            if not np.logical_or.reduceat(alive, self._begins).all():
                return None
            low = np.maximum(low, self._ends(np.minimum, np.inf, self._low, alive).max(axis=0))
            high = np.minimum(high, self._ends(np.maximum, -np.inf, self._high, alive).min(axis=0))
        return alive, low, high

    def _reach_the_sum(self, alive: Array) -> Array:
        """Which leaves (K,) reach the target with the least or largest effects of the other trees."""
        lowest = self._ends(np.minimum, np.inf, self._effects, alive)
        highest = self._ends(np.maximum, -np.inf, self._effects, alive)
        others_low, others_high = lowest.sum(axis=0) - lowest, highest.sum(axis=0) - highest
        due = self._target - self._effects
        above = due >= others_low[self._tree] - self._tolerance
        reached: Array = (above & (due <= others_high[self._tree] + self._tolerance)).all(axis=1)
        return reached

    def _ends(self, end: np.ufunc, none: float, of: Array, alive: Array) -> Array:
        """The least or largest ``of`` (K, c) among the leaves of each tree that are left: (T, c)."""
        ends: Array = end.reduceat(np.where(alive[:, None], of, none), self._begins, axis=0)
        return ends

    def _keep(self, alive: Array, low: Array, high: Array) -> None:
        """Count a choice; it replaces the drawn one with equal odds."""
        self.least, self.largest = np.minimum(self.least, low), np.maximum(self.largest, high)
        self.found += 1
        if self._rng.random() < 1 / self.found:
            self.chosen = self._leaves[alive]
