"""In which boxes of values training rows stand, and which class they have, as sums of later trees prove.

A box is where one leaf of each of the first trees meet. Rows of one box have the same probability p_c before
the next tree, so only their numbers are unknown: n_c rows of box c end in a leaf of it, and m rows of this
leaf have class 1. The file tells (Chen and Guestrin, 2016, equation 5)

    H = Σ n_c p_c (1 − p_c)   and   G = Σ n_c p_c − m,

H as the cover of the leaf, G by its value, as in :mod:`vflens.numerics.boosting.first_tree`. Every n_c is
whole, a box that does not meet the leaf has none there, and all rows of a box end in some leaf. Where few
choices are left, all are tried; what they agree upon is proven. A tree that leaves a number open ends the
search: without it no later probability is known.

TimberStrike (Di Gennaro et al., 2025, arXiv 2506.07605) searches later trees for one assignment that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.boosting.first_tree import leaf_counts
from vflens.numerics.boosting.rates import EPS, Rates, UntoldError, rates
from vflens.numerics.boosting.trees import Tree
from vflens.numerics.boosting.whole_sums import WholeSums, Work

_OTHERS = "no whole numbers fit a later tree: it had other rows than the first, or rows had weights"
_LEAST = 1e-16  # XGBoost's least hessian
_OFF = 1e-3  # of a bound that a linear program gives
_MOST_PLACES = 200_000  # in the equations of these programs: tens of seconds
_MOST_CELLS = 10**8  # of boxes, leaves and columns that are compared for a tree: a second


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes that hold all training rows: ``leaves`` int (C, t), the place of the leaf in each of the first t
    trees, ``rows`` int (C,) in each box, of which from ``least`` to ``most`` int (C,) have class 1.
    """

    leaves: Array
    rows: Array
    least: Array
    most: Array


def proven_boxes(trees: Sequence[Tree], base: float) -> Boxes:
    """The boxes of as many of the ``trees`` as are proven.

    Proven means that no other numbers fit the file, if all trees were trained on the same rows, of equal
    weight and without missing values. A probability may miss that of exact arithmetic by two units in the
    last place of single precision, and by what two such units of the margin make; a sum by one.

    Args:
        trees: in order, of logistic loss.
        base: the probability of class 1 before the first one.

    Raises:
        UntoldError: see :func:`vflens.numerics.boosting.first_tree.leaf_counts`; or no numbers fit a tree, so
            it had other rows or weights.
    """
    found = rates(trees)
    ((rows, ones),) = leaf_counts(trees, np.zeros(len(trees), int), np.array([base]))
    columns, first = np.unique(np.concatenate([tree.feature[tree.feature >= 0] for tree in trees])), trees[0]
    margin = np.float32(np.log(base / (1 - base))) + first.value[first.leaves].astype(np.float32)
    low, high = first.boxes(columns)
    now = _Partition(leaves=np.arange(len(rows))[:, None], rows=rows, margin=margin, low=low, high=high)
    members, work = [ones], Work()
    for tree in trees[1:]:
        if now.low.size * len(tree.leaves) > _MOST_CELLS:
            break
        table = _Table(tree, now, tree.boxes(columns), found)
        if not (table.fits(int(ones.sum())) and table.solved(work)):
            break
        members.append(table.members())
        now = now.split(tree, columns, table.most)
    return Boxes(now.leaves, now.rows, *_of_class(now, members))


@dataclass(frozen=True, eq=False)
class _Partition:
    """Boxes with ``leaves`` (C, t) and ``rows`` (C,), the float32 ``margin`` (C,) of their rows, and their
    values from ``low`` to below ``high`` (C, d).
    """

    leaves: Array
    rows: Array
    margin: Array
    low: Array
    high: Array

    def split(self, tree: Tree, columns: Array, table: Array) -> _Partition:
        """Cut by the leaves of ``tree``, with the numbers of rows in ``table`` (C, L)."""
        box, leaf = np.nonzero(table)
        low, high = tree.boxes(columns)
        return _Partition(
            leaves=np.column_stack([self.leaves[box], leaf]),
            rows=table[box, leaf],
            margin=self.margin[box] + tree.value[tree.leaves][leaf].astype(np.float32),
            low=np.maximum(self.low[box], low[leaf]),
            high=np.minimum(self.high[box], high[leaf]),
        )


class _Table:
    """How many rows of each box end in each leaf of the next tree: ``least`` to ``most`` int (C, L)."""

    def __init__(self, tree: Tree, now: _Partition, boxes: tuple[Array, Array], rates: Rates) -> None:
        self._rows = now.rows
        cover, (gradient, off_gradient) = tree.cover[tree.leaves], rates.gradients(tree)
        self._due = np.stack([cover, gradient])
        self._weights, off = _weights(now.margin)
        most = cover / self._weights[0].min()  # rows of a leaf
        self._slack = np.stack([cover * (off[0] + EPS), most * off[1] + off_gradient])
        self.most = np.where(_meet(now.low, now.high, *boxes), now.rows[:, None], 0)
        self.least = np.zeros_like(self.most)
        self._fill()
        self._tried: dict[int, int] = {}

    def fits(self, ones: int) -> bool:
        """Whether single precision tells how many rows of a leaf have class 1: ``ones`` in all.

        Raises:
            UntoldError: the sums are not those of all rows.
        """
        off = self._weights @ self._rows - self._due.sum(axis=1) - [0, ones]
        if (np.abs(off) > self._slack.sum(axis=1)).any():
            raise UntoldError(_OTHERS)
        return bool((self._slack[1] < 0.5).all())

    def solved(self, work: Work) -> bool:
        """Whether every number is proven; all leaves are tried again until none of them has changed.

        Raises:
            UntoldError: no numbers fit.
        """
        while waiting := [
            leaf for leaf in range(self.most.shape[1]) if self._open(leaf) != self._tried.get(leaf)
        ]:
            for leaf in waiting:
                self._narrow(leaf, work)
        return not (self.most - self.least).any()

    def members(self) -> Array:
        """The rows of class 1 in each leaf (L,), of a solved table."""
        found: Array = (self._weights[1] @ self.most - self._due[1]).round().astype(int)
        return found

    def _open(self, leaf: int) -> int:
        return int((self.most - self.least)[:, leaf].sum())

    def _narrow(self, leaf: int, work: Work) -> None:
        """Narrow the numbers of a leaf to those that fit."""
        at = np.flatnonzero(self.most[:, leaf])
        sums = WholeSums(self._weights[:, at], self._due[:, leaf], self._slack[:, leaf])
        ends = sums.ends(self.least[at, leaf], self.most[at, leaf], work)
        if ends is not None:
            self.least[at, leaf], self.most[at, leaf] = ends
        self._tried[leaf] = self._open(leaf)
        self._fill()

    def _fill(self) -> None:
        """The rows of a box are those in all leaves."""
        if (self.least > self.most).any():
            raise UntoldError(_OTHERS)
        spare = self._rows - self.least.sum(axis=1)
        self.most = np.minimum(self.most, self.least + spare[:, None])
        short = self.most.sum(axis=1) - self._rows
        self.least = np.maximum(self.least, self.most - short[:, None])


def _meet(low: Array, high: Array, other_low: Array, other_high: Array) -> Array:
    """Whether boxes of values (C, d) have a point in common with others (L, d): bool (C, L)."""
    found = np.ones((len(low), len(other_low)), bool)
    for least, most, other_least, other_most in zip(low.T, high.T, other_low.T, other_high.T, strict=True):
        found &= (least[:, None] < other_most) & (other_least < most[:, None])
    return found


def _weights(margin: Array) -> tuple[Array, tuple[float, float]]:
    """Hessian and probability (2, C) of rows with these float32 margins (C,), and how far the numbers of
    XGBoost may lie from them: the hessians relative to themselves, the probabilities.
    """
    with np.errstate(over="ignore"):  # a probability of 0
        p = 1 / (1 + np.exp(-margin.astype(np.float64)))
    h = np.maximum(p * (1 - p), _LEAST)
    off = 2 * _spacing(p) + 2 * _spacing(margin) * h  # units in the last place
    return np.stack([h, p]), (float(((off * np.abs(1 - 2 * p) + _spacing(h)) / h).max()), float(off.max()))


def _spacing(numbers: Array) -> Array:
    """The distance of the next numbers in single precision."""
    found: Array = np.spacing(np.abs(numbers).astype(np.float32)).astype(np.float64)
    return found


def _of_class(now: _Partition, members: Sequence[Array]) -> tuple[Array, Array]:
    """The least and largest number of rows of class 1 in each box; each tree's leaves have ``members``."""
    from scipy.optimize import linprog

    if len(members) == 1:
        return members[0], members[0]
    inside = [now.leaves[:, [t]] == np.arange(len(of)) for t, of in enumerate(members)]
    A, b = np.concatenate(inside, axis=1).T, np.concatenate(members)
    if A.size > _MOST_PLACES:
        return np.zeros_like(now.rows), now.rows
    ends = np.stack([np.zeros(len(now.rows)), now.rows])
    for box, unit in enumerate(np.eye(len(now.rows))):
        for end, sign in enumerate((1, -1)):
            found = linprog(sign * unit, A_eq=A, b_eq=b, bounds=ends.T)
            if found.status == 2:
                raise UntoldError(_OTHERS)
            if found.status == 0:
                ends[end, box] = sign * found.fun
    return np.ceil(ends[0] - _OFF).astype(int), np.floor(ends[1] + _OFF).astype(int)
