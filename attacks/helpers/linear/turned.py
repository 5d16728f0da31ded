"""The weights of the columns themselves, where those that were disclosed belong to turned ones."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vflens.numerics.assignment import assigned
from vflens.numerics.imputation import imputation
from vflens.types import Array

_ROUNDING = 1e-12  # of the logits' sum of squares


class Turned(NamedTuple):
    """Logits are x ↦ ``weight`` x + ``offset`` of the columns x themselves: (k, d) and (k,)."""

    weight: Array
    offset: Array

    def error(self, x: Array, z: Array) -> float:
        """Sum of squares from the logits ``z`` (m, k) of rows ``x`` (m, d), but for what classes share."""
        return float((_centred(x @ self.weight.T + self.offset - z) ** 2).sum())


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
    W, near = _centred(weight.T).T, _centred(z)
    heavy = (x**2).sum(axis=0) * (W**2).sum(axis=0)
    while True:
        left = x @ (W * signs).T - near
        change = 4 * (heavy - signs * ((left.T @ x) * W).sum(axis=0))
        if not _nearer(change, near):
            return _plain(weight * signs)
        signs[change.argmin()] *= -1


def _permuted(weight: Array, x: Array, z: Array) -> Turned:
    """Columns in another order: assigned, then exchanged in pairs while that brings the logits nearer."""
    order: Array = assigned(((_seen(x, z)[:, :, None] - weight[:, None, :]) ** 2).sum(axis=0))
    W, near, columns_apart = _centred(weight.T).T, _centred(z), _apart(x)
    while True:
        here = W[:, order]
        crossed = ((x @ here.T - near).T @ x).T @ here  # (d, d): misfits along column i by the weight of j
        own = np.diagonal(crossed)
        change = columns_apart * _apart(here) + 2 * (crossed + crossed.T - own - own[:, None])
        if not _nearer(change, near):
            return _plain(weight[:, order])
        pair = list(np.unravel_index(change.argmin(), change.shape))
        order[pair] = order[pair[::-1]]


def _centred(rows: Array) -> Array:
    """``rows`` (m, k) without what their classes share."""
    found: Array = rows - rows.mean(axis=1, keepdims=True)
    return found


def _apart(columns: Array) -> Array:
    """The squared distances (d, d) between ``columns`` (m, d)."""
    products = columns.T @ columns
    own = np.diagonal(products)
    found: Array = own + own[:, None] - 2 * products
    return found


def _nearer(change: Array, logits: Array) -> bool:
    """Whether a step that changes the sum of squares so brings it down, by more than rounding does."""
    return bool(change.min() < -_ROUNDING * (logits**2).sum())


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
    found: Array = imputation(x, _centred(z)).B.T
    return found


def _plain(weight: Array) -> Turned:
    return Turned(weight, np.zeros(len(weight)))
