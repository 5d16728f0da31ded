"""The learning rate η and the penalty λ of boosted trees, which a file of XGBoost lacks, from its sums.

A leaf's value is −η G / (H + λ), with G = Σ g_i and H = Σ h_i over its rows (Chen and Guestrin, 2016,
equation 5). A file keeps H and −G / (H + λ) of inner nodes. G of a node is the sum of its children's, in
every tree: equations that are linear in λ, 1/η and λ/η. Each holds up to the rounding of its terms to single
precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.boosting.trees import Tree

EPS = float(np.finfo(np.float32).eps)
_OFF = 4 * EPS  # of an equation, beside the sum of its terms: each has up to three roundings by half of EPS
_LEAST = 3  # equations in two unknowns: one at least checks the formula
_FEW = "its splits are too few to tell the learning rate and the penalty"


class UntoldError(Exception):
    """A file does not tell of its training; the message is the reason, as a clause."""


@dataclass(frozen=True, eq=False)
class Rates:
    """λ and 1/η as ``values`` (2,); the true ones lie within ± both columns of ``steps`` (2, 2) of them."""

    values: Array
    steps: Array

    def gradients(self, tree: Tree) -> tuple[Array, Array]:
        """G of each leaf (L,), and how far it may be off."""
        value, weight = tree.value[tree.leaves], tree.cover[tree.leaves] + self.values[0]
        G = -value * weight * self.values[1]
        slopes = np.stack([value * self.values[1], value * weight], axis=1)
        return G, np.abs(slopes @ self.steps).sum(axis=1) + 2 * EPS * np.abs(G)


def rates(trees: Sequence[Tree]) -> Rates:
    """The only λ ≥ 0 and η > 0 with which the sums of all trees come out.

    Raises:
        UntoldError: there are none, or others fit as well.
    """
    if any(tree.weight is None for tree in trees):
        raise UntoldError("it lacks base_weights")
    with np.errstate(all="ignore"):  # of numbers that no training gives
        A, b, terms = (np.concatenate(part) for part in zip(*map(_equations, trees), strict=True))
        if not np.isfinite([A.sum(), terms.sum()]).all() or (terms < 0).any():
            raise UntoldError("its sums are no training's")
        A, b, terms = (part[terms.any(axis=1)] for part in (A, b, terms))
        if len(b) < _LEAST:
            raise UntoldError(_FEW)
        fits = [fit for start in _starts(A, b, terms) if (fit := _fitted(A, b, terms, start))]
    if not fits:
        raise UntoldError("no learning rate with an L2 penalty gives its sums: it was trained otherwise")
    first, off = fits[0], np.abs(fits[0].steps).sum(axis=1)
    if not np.isfinite(off).all() or any((np.abs(fit.values - first.values) > off).any() for fit in fits):
        raise UntoldError(_FEW)
    return first


def _starts(A: Array, b: Array, terms: Array) -> list[Array]:
    """λ and 1/η (2,) near which the equations may hold.

    The two least singular vectors of (A, −b) span what nearly solves them, up to a factor: two points of this
    line at most have λ/η as their third number.
    """
    size = terms[:, 0] + terms[:, 2] * (terms[:, 0].sum() / max(terms[:, 2].sum(), 1e-300))
    M = np.column_stack([A, -b]) / np.where(size > 0, size, np.inf)[:, None]
    unit = np.abs(M).max(axis=0)
    if not np.isfinite(unit).all():
        return []
    unit[unit == 0] = 1
    q, p, *_ = np.linalg.eigh((M / unit).T @ (M / unit))[1].T / unit
    one, other = (np.convolve([p[i], q[i]], [p[j], q[j]]) for i, j in ((2, 3), (0, 1)))
    a, b, c = one - other
    far = -(b + np.copysign(np.sqrt(max(b * b - 4 * a * c, 0)), b)) / 2
    return [(q + t * p)[:2] / (q + t * p)[3] for t in (far / a, c / far)]


def _fitted(A: Array, b: Array, terms: Array, x: Array) -> Rates | None:
    """Least squares in λ and 1/η, each equation beside the size of its terms, by Gauss and Newton's steps."""
    for _ in range(20):
        size = terms @ np.abs([1, *x, x[0] * x[1]])
        off = (A @ [*x, x[0] * x[1]] - b) / size
        slopes = np.stack([A[:, 0] + x[1] * A[:, 2], A[:, 1] + x[0] * A[:, 2]], axis=1) / size[:, None]
        if not (np.isfinite(off).all() and np.isfinite(slopes).all()):
            return None
        x = x - np.linalg.lstsq(slopes, off, rcond=None)[0]
    steps = _steps(slopes)
    fits = np.abs(off).max() <= _OFF and x[1] > 0 and x[0] >= -np.abs(steps[0]).sum()
    return Rates(x, steps) if fits else None


def _steps(slopes: Array) -> Array:
    """How far the unknowns may go (2, 2) before one of two equations is off; infinite if rank is lacking."""
    one = (np.abs(slopes) / np.abs(slopes).max(axis=0)).sum(axis=1).argmax()
    area = slopes[one, 0] * slopes[:, 1] - slopes[one, 1] * slopes[:, 0]
    other = np.abs(area).argmax()
    (a, b), (c, d) = slopes[one], slopes[other]
    steps: Array = np.array([[d, -b], [-c, a]]) * 2 * _OFF / area[other]
    return np.where(np.isfinite(steps), steps, np.inf)


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
