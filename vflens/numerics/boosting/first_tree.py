"""How many training rows end in each leaf of a class's first tree, and how many of them have that class.

A leaf's value is −η G / (H + λ), with G = Σ (p_i − y_i) and H = Σ p_i (1 − p_i) over its rows (Chen and
Guestrin, 2016, equation 5). Before the first tree all p_i are the base score p, so H / (p (1 − p)) is the
number n of its rows and n p − G that of ones. TimberStrike (Di Gennaro et al., 2025, arXiv 2506.07605) begins
so: first-tree probing. Of k classes each has its own trees: G is the same with p and y of that class, and
XGBoost takes H = Σ 2 p_i (1 − p_i).

A file of XGBoost keeps H and −G / (H + λ) of inner nodes too, but neither η nor λ. G of a node is the sum of
its children's, in every tree: equations that are linear in λ, 1/η and λ/η.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.boosting.trees import Tree

_SINGLE = 2e-6  # relative, of numbers in single precision and of rates that follow from them
_EPS = float(np.finfo(np.float32).eps)
_OFF = 1e-4  # of an equation, beside the largest number in it
_WHOLE = 0.05  # how far a number of rows may be from a whole one


def leaf_counts(trees: Sequence[Tree], score: Array, base: Array) -> list[tuple[Array, Array]] | None:
    """For each score the numbers of training rows, and of its class, int (L,) in its first tree's leaves.

    Args:
        trees: in order, of logistic loss for one score, which is that of class 1; else of softmax.
        score: int (T,), the score to which each tree adds.
        base: (k,), the probability of each score's class before its first tree.

    Returns:
        None where the file does not fit the formulas: rows had weights or were drawn anew for each tree, or
        leaves have another penalty, or one holds 225,000 rows: single precision tells no whole number.
    """
    found = rates(trees)
    if found is None:
        return None
    counts = []
    for k, p in enumerate(base.tolist()):
        first = trees[int(np.argmax(score == k))]
        with np.errstate(all="ignore"):  # of numbers that no training gives
            rows = first.cover[first.leaves] / (min(len(base), 2) * p * (1 - p))
            both = np.stack([rows, rows * p - found.gradients(first)[0]])
            whole, off = both.round(), _WHOLE + _SINGLE * rows.max()
            is_whole = off < 0.5 and np.abs(both - whole).max() <= off  # else every number is nearly whole
        if not is_whole or (whole[1] < 0).any() or (whole[1] > whole[0]).any():
            return None
        counts.append((whole[0].astype(int), whole[1].astype(int)))
    return counts


@dataclass(frozen=True, eq=False)
class Rates:
    """λ, 1/η and λ/η as ``values`` (3,), and how far single precision lets each be ``off`` (3,)."""

    values: Array
    off: Array

    def gradients(self, tree: Tree) -> tuple[Array, Array]:
        """G of each leaf (L,), and how far it may be off."""
        cover, value = tree.cover[tree.leaves], tree.value[tree.leaves]
        G = -value * (cover * self.values[1] + self.values[2])
        return G, np.abs(value) * (cover * self.off[1] + self.off[2]) + 2 * _EPS * np.abs(G)


def rates(trees: Sequence[Tree]) -> Rates | None:
    """The rates by least squares; None if they do not give the sums of all trees."""
    if any(tree.weight is None for tree in trees):
        return None
    with np.errstate(all="ignore"):  # of numbers that no training gives
        A, b, terms = (np.concatenate(part) for part in zip(*map(_equations, trees), strict=True))
        size = np.abs(A).max(axis=0, initial=0)
        if not (np.isfinite(size).all() and size.all() and np.isfinite(b).all()):
            return None
    inverse = np.linalg.pinv(A / size, rcond=_SINGLE)
    values = inverse @ b / size
    if np.abs(A @ [*values[:2], values[0] * values[1]] - b).max() > _OFF * size.max():
        return None
    gross = terms @ np.abs([1, *values])
    return Rates(values, np.abs(inverse) @ gross / size * 2 * _EPS)


def _equations(tree: Tree) -> tuple[Array, Array, Array]:
    """A (m, 3) and b (m,) with A (λ, 1/η, λ/η) = b: G of each inner node is the sum of its children's.

    The last (m, 4) are the sizes of the terms of which b and A are differences.
    """
    assert tree.weight is not None
    inner = np.flatnonzero(tree.feature >= 0)
    children = np.stack([tree.left[inner], tree.right[inner]])
    is_leaf, cover = tree.feature[children] < 0, tree.cover[children]
    weight, value = np.where(is_leaf, 0, tree.weight[children]), np.where(is_leaf, tree.value[children], 0)
    own, own_cover = tree.weight[inner], tree.cover[inner]
    A = np.stack([weight.sum(axis=0) - own, (value * cover).sum(axis=0), value.sum(axis=0)], axis=1)
    b: Array = own * own_cover - (weight * cover).sum(axis=0)
    weight, value, own = np.abs(weight), np.abs(value), np.abs(own)
    inside = (weight * cover).sum(axis=0) + own * own_cover
    terms = [inside, weight.sum(axis=0) + own, (value * cover).sum(axis=0), value.sum(axis=0)]
    return A, b, np.stack(terms, axis=1)
