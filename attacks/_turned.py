"""The weights of the columns themselves, where those that were disclosed belong to turned ones."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from vflens.numerics.assignment import assigned
from vflens.numerics.imputation import imputation
from vflens.types import Array

_LONG = 64  # columns: 2016 pairs


class Turned(NamedTuple):
    """Logits are x ↦ ``weight`` x + ``offset`` of the columns x themselves: (k, d) and (k,)."""

    weight: Array
    offset: Array

    def error(self, x: Array, z: Array) -> float:
        """Sum of squares from the logits ``z`` (m, k) of rows ``x`` (m, d), but for what classes share."""
        left = x @ self.weight.T + self.offset - z
        return float(((left - left.mean(axis=1, keepdims=True)) ** 2).sum())


#: Of disclosed weights (k, d), rows (m, d) and their logits (m, k) without a bias.
Turn = Callable[[Array, Array, Array], Turned]


def _as_disclosed(weight: Array, x: Array, z: Array) -> Turned:
    return _plain(weight)


def _negated(weight: Array, x: Array, z: Array) -> Turned:
    return _plain(-weight)


def _complement(weight: Array, x: Array, z: Array) -> Turned:
    return Turned(-weight, weight.sum(axis=1))


def _signs(weight: Array, x: Array, z: Array) -> Turned:
    """A sign for each column: flipped one by one while that brings the logits nearer."""
    signs = np.where((_seen(x, z) * weight).sum(axis=0) < 0, -1.0, 1.0)
    flipped = [np.where(np.arange(len(signs)) == i, -1.0, 1.0) for i in range(len(signs))]

    def flips(now: Array) -> list[Array]:
        return [now * flip for flip in flipped]

    return _improved(signs, flips, lambda s: _plain(weight * s), x, z)


def _permuted(weight: Array, x: Array, z: Array) -> Turned:
    """Columns in another order: assigned, then exchanged in pairs while that brings the logits nearer."""
    apart = ((_seen(x, z)[:, :, None] - weight[:, None, :]) ** 2).sum(axis=0)
    order: Array = assigned(apart)
    return _improved(order, _exchanged, lambda o: _plain(weight[:, o]), x, z)


def _orthonormal(weight: Array, x: Array, z: Array) -> Turned:
    """W H with that orthonormal H for which it is nearest to what the rows show (Schönemann, 1966)."""
    mean = weight.mean(axis=0)
    U, _, Vt = np.linalg.svd((weight - mean).T @ _seen(x, z), full_matrices=False)
    return _plain((weight - mean) @ U @ Vt)


TURNS: tuple[Turn, ...] = (_as_disclosed, _complement, _negated, _signs, _permuted, _orthonormal)


def turned(weight: Array, x: Array, z: Array) -> Turned:
    """The turn of ``weight`` (k, d) that explains logits ``z`` (m, k), without bias, of known ``x`` (m, d).

    It is of the kind of :data:`TURNS` that errs least on one half of the rows after the other taught it.
    """
    half = (len(x) + 1) // 2
    errors = [kind(weight, x[:half], z[:half]).error(x[half:], z[half:]) for kind in TURNS]
    return TURNS[int(np.argmin(errors))](weight, x, z)


def _seen(x: Array, z: Array) -> Array:
    """Weights (k, d) by ridge regression of logits on rows; what all classes share is taken off."""
    found: Array = imputation(x, z - z.mean(axis=1, keepdims=True)).B.T
    return found


def _plain(weight: Array) -> Turned:
    return Turned(weight, np.zeros(len(weight)))


def _exchanged(order: Array) -> list[Array]:
    """``order`` (d,) with each pair of places exchanged; none of a long one, which has too many."""
    found: list[Array] = []
    if len(order) > _LONG:
        return found
    for i, j in combinations(range(len(order)), 2):
        found.append(order.copy())
        found[-1][[i, j]] = order[[j, i]]
    return found


def _improved(
    start: Array,
    neighbours: Callable[[Array], Sequence[Array]],
    made: Callable[[Array], Turned],
    x: Array,
    z: Array,
) -> Turned:
    """What is ``made`` of the end of steps to the best of ``neighbours``, while the logits come nearer."""
    best, least = start, made(start).error(x, z)
    while True:
        around = neighbours(best)
        errors = [made(one).error(x, z) for one in around]
        if min(errors, default=np.inf) >= least * (1 - 1e-12):
            return made(best)
        best, least = around[int(np.argmin(errors))], min(errors)
