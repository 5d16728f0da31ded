"""Many symmetric systems at once: Cholesky with the batch in the last axis.

LAPACK is called once per matrix, and for a handful of unknowns the calls cost more than the arithmetic. Here
every operation runs over the whole batch: N systems cost some r² array operations
(benchmarks/test_estimators.py). Systems of more than :data:`SMALL` unknowns go to LAPACK, one by one.
"""

import numpy as np
from scipy.linalg import lapack, solve_triangular

from vflens.array import Array

#: Unknowns up to which operations over the batch are the faster way.
SMALL = 64


def gram(Q: Array, weights: Array) -> Array:
    """Qᵀ diag(w) Q (r, r, N), for ``Q`` (d, r) and every column w of ``weights`` (d, N)."""
    d, r = Q.shape
    if r > SMALL:
        return _batch_last([(Q.T * w) @ Q for w in weights.T], (r, r))
    products = (Q[:, :, None] * Q[:, None, :]).reshape(d, r * r)
    matrices: Array = (products.T @ weights).reshape(r, r, weights.shape[1])
    return matrices


def factor(H: Array, singular: float = 0.0) -> Array:
    """L (r, r, N), lower triangular, with H = L Lᵀ for every matrix of ``H`` (r, r, N); its diagonal holds
    1/L_jj.

    Reads the lower triangle and overwrites it. A pivot up to ``singular`` gives NaN in that matrix alone,
    down to its last entry.
    """
    if len(H) > SMALL:
        return _batch_last([_factor(H[:, :, n], singular) for n in range(H.shape[2])], H.shape[:2])
    with np.errstate(invalid="ignore"):
        for j in range(len(H)):
            if j:
                H[j:, j] -= np.einsum("ikn,kn->in", H[j:, :j], H[j, :j])
            H[j, j] = 1 / np.sqrt(np.where(H[j, j] > singular, H[j, j], np.nan))
            H[j + 1 :, j] *= H[j, j]
    return H


def solve(L: Array, g: Array) -> Array:
    """Solution x (r, N) of L Lᵀ x = g, for ``L`` of :func:`factor` and ``g`` (r, N)."""
    x = g.copy()
    with np.errstate(invalid="ignore"):
        for j in range(len(x)):
            x[j] *= L[j, j]
            x[j + 1 :] -= L[j + 1 :, j] * x[j]
        for j in reversed(range(len(x))):
            x[j] *= L[j, j]
            x[:j] -= L[j, :j] * x[j]
    return x


def forward(L: Array, G: Array) -> Array:
    """Solution T (r, c, N) of L T = G, with the same right-hand sides ``G`` (r, c) for every matrix."""
    r, c = G.shape
    if r > SMALL:
        return _batch_last([_forward(L[:, :, n], G) for n in range(L.shape[2])], (r, c))
    T = np.empty((r, c, L.shape[2]))
    for j in range(r):
        T[j] = G[j, :, None]
        if j:
            T[j] -= np.einsum("kn,kcn->cn", L[j, :j], T[:j])
        T[j] *= L[j, j]
    return T


def _factor(H: Array, singular: float) -> Array:
    """:func:`factor` of one matrix; NaN as a whole if a pivot is too small."""
    L, failed = lapack.dpotrf(H, lower=True)
    pivots = np.diagonal(L)
    if failed or np.min(pivots) ** 2 <= singular:
        return np.full_like(H, np.nan)
    np.fill_diagonal(L, 1 / pivots)
    return np.asarray(L)


def _forward(L: Array, G: Array) -> Array:
    """:func:`forward` of one matrix; NaN where ``L`` is."""
    L = L.copy()
    np.fill_diagonal(L, 1 / np.diagonal(L))
    return np.asarray(solve_triangular(L, G, lower=True, check_finite=False))


def _batch_last(matrices: list[Array], shape: tuple[int, ...]) -> Array:
    """(r, c, N) of N matrices of ``shape`` (r, c); N may be 0."""
    return np.ascontiguousarray(np.moveaxis(np.reshape(matrices, (-1, *shape)), 0, -1))
