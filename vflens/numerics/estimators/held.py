"""Least squares with some coordinates held, for a whole batch: systems with one unknown per held coordinate.

With orthonormal Q (d, r) and W (d, d − r), Q Qᵀ + W Wᵀ = I. Holding the coordinates H leaves (Woodbury)

    (Qᵀ diag(free) Q)⁻¹ = (I − Q_Hᵀ Q_H)⁻¹ = I + Q_Hᵀ (W_H W_Hᵀ)⁻¹ Q_H.

Usually few are held: W_H W_Hᵀ is then the smaller matrix, and stays exact for coordinates that the equations
nearly determine. Each row of the batch keeps its held coordinates in slots ``at`` (a, N); an empty slot has
the number d.
"""

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators import cholesky


def products(W: Array) -> Array:
    """W Wᵀ with a row and a column of zeros for the empty slots (d + 1, d + 1)."""
    d = len(W)
    padded = np.zeros((d + 1, d + 1))
    np.matmul(W, W.T, out=padded[:d, :d])
    return padded


def pulls(products: Array, at: Array, right: Array, singular: float = 0.0) -> Array:
    """(W_H W_Hᵀ)⁻¹ ``right`` (a, N) by Gauss and Jordan; NaN for a pivot ≤ ``singular``, 0 in empty slots."""
    a = len(at)
    H = products.take(at[:, None] * len(products) + at)
    M = np.concatenate([H, right[:, None]], axis=1)
    M[np.arange(a), np.arange(a)] += at == len(products) - 1
    for j in range(a):
        pivot = M[j, j:] / np.where(M[j, j] > singular, M[j, j], np.nan)
        M[:, j:] -= M[:, j, None] * pivot
        M[j, j:] = pivot
    pull: Array = M[:, a]
    return pull


def solve(Q: Array, products: Array, held: Array, g: Array, singular: float = 0.0) -> Array:
    """The x (r, N), Qᵀ diag(free) Q x = ``g`` for ``held`` bool (d, N); NaN if a pivot is ≤ ``singular``."""
    d, r = Q.shape
    count = held.sum(axis=0)
    lost = np.flatnonzero(count > d - r)
    if len(lost):
        held = held & (count <= d - r)
        count[lost] = 0
    if count.max(initial=0) < r:
        pull = np.zeros(held.shape)
        row, coordinate = np.divmod(np.flatnonzero(held.T), d)
        slot = np.arange(len(row)) - (count.cumsum() - count)[row]
        at = np.full((count.max(initial=0), len(count)), d)
        at[slot, row] = coordinate
        right = np.zeros(at.shape)
        right[slot, row] = (Q @ g)[coordinate, row]
        pull[coordinate, row] = pulls(products, at, right, singular)[slot, row]
        x = g + Q.T @ pull
    else:
        x = cholesky.solve(cholesky.factor(cholesky.gram(Q, (~held).astype(np.float64)), singular), g)
    x[:, lost] = np.nan
    return x
