"""The proof that both relaxed Chebyshev centres agree, RCC1 = RCC2 (``docs/estimators.md``).

With v_i = x_i(1 − x_i) at the RCC2 point, RCC1 and RCC2 have equal optimal values exactly if some G ⪰ 0 with
A G = 0 has the diagonal v; that is, if vectors g_i of length √v_i have Σ_i A_ji g_i = 0 for every equation j.

1. Refuted if P_ii √v_i > Σ_{j≠i} |P_ij| √v_j for some i, P = A⁺A: the vectors cannot close.
2. One shot: y with ((I − P) ∘ (I − P)) y = v gives G = (I − P) diag(y) (I − P) that diagonal; a proof if
   G ⪰ 0.
3. Else Newton's method for unit vectors u_i in R^m, m = min(⌈√(2d)⌉ + 1, d − r), with
   F = Σ_i √v_i q_i u_iᵀ = 0: the shortest tangents T_i = √v_i (I − u_i u_iᵀ) Λᵀq_i that close the linearised
   sum, Σ_i √v_i q_i T_iᵀ = −F, then back to length 1. A value of 0 is a proof; a larger value proves neither.
"""

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators import cholesky

#: ‖Σ √v_i q_i u_iᵀ‖_F up to this counts as 0. RCC1's value then differs from RCC2's by at most some √d times
#: it.
CLOSED = 1e-11

#: Limits of Newton's method: steps, the share of the last value that each must reach, and unknowns Λ per row;
#: beyond them the interior point costs less (benchmarks/test_estimators.py).
STEPS, PACE, UNKNOWNS = 12, 0.7, 200

#: Numbers in one block.
CHUNK = 2**20


def proved(Q: Array, W: Array, v: Array) -> Array:
    """Whether RCC1 = RCC2 is certain (N,), for ``v`` (N, d) and bases ``Q`` (d, r), ``W`` (d, p) of A's rows
    and null space.
    """
    s = np.sqrt(v)
    size = np.abs(Q @ Q.T)
    possible: Array = (2 * s * np.diag(size) <= s @ size + CLOSED).all(axis=1)
    if (
        Q.shape[1] <= 1
    ):  # for one equation the polygon inequality is also sufficient; without equations all is certain
        return possible
    result = np.zeros(len(v), bool)
    left = np.flatnonzero(possible)
    result[left] = _one_shot(W, v[left])
    left = left[~result[left]]
    m = min(int(np.ceil(np.sqrt(2 * len(Q)))) + 1, W.shape[1])  # an upper bound on G's rank
    unknowns = Q.shape[1] * m
    if unknowns <= UNKNOWNS:
        size = max(16, CHUNK // (unknowns * (len(Q) + unknowns)))
        for first in range(0, len(left), size):
            rows = left[first : first + size]
            result[rows] = _closing(Q, s[rows], m)
    return result


def _one_shot(W: Array, v: Array) -> Array:
    squares = (W @ W.T) ** 2
    y = v @ np.linalg.pinv(squares, rcond=1e-12, hermitian=True)
    exact = np.abs(y @ squares - v).max(axis=1, initial=0.0) < 1e-13
    positive = np.isfinite(cholesky.factor(cholesky.gram(W, y.T))[-1, -1])
    certain: Array = exact & positive
    return certain


def _closing(Q: Array, s: Array, m: int) -> Array:
    """Newton's method from one random start."""
    d, r = Q.shape
    start = np.random.default_rng(0).normal(size=(d, m))
    u = np.repeat((start / np.linalg.norm(start, axis=1, keepdims=True))[None], len(s), axis=0)
    left, closed, before = np.arange(len(s)), np.zeros(len(s), bool), np.full(len(s), np.inf)
    for _ in range(STEPS):
        F = Q.T @ (s[:, :, None] * u)
        value = np.sqrt((F * F).sum(axis=(1, 2)))
        closed[left[value <= CLOSED]] = True
        go = (value > CLOSED) & (value < PACE * before)
        left, s, u, F, before = left[go], s[go], u[go], F[go], value[go]
        if not len(left):
            break
        factors = np.linalg.solve(_normal(Q, s, u), -F.reshape(-1, r * m, 1)).reshape(-1, r, m)
        step = s[:, :, None] * (Q @ factors)
        u = u + step - u * (u * step).sum(axis=2, keepdims=True)
        u /= np.linalg.norm(u, axis=2, keepdims=True)
    return closed


def _normal(Q: Array, s: Array, u: Array) -> Array:
    """The matrices (N, r m, r m) of Λ ↦ Σ_i v_i q_i q_iᵀ Λ (I − u_i u_iᵀ), a little above singular."""
    (n, d, m), r = u.shape, Q.shape[1]
    along = (s[:, :, None, None] * Q[:, :, None] * u[:, :, None]).reshape(n, d, r * m)
    matrix: Array = -(along.transpose(0, 2, 1) @ along)
    whole = Q.T @ (s[:, :, None] ** 2 * Q)
    blocks, same = matrix.reshape(n, r, m, r, m), np.arange(m)
    blocks[:, :, same, :, same] += whole
    diagonal = np.arange(r * m)
    matrix[:, diagonal, diagonal] += 1e-12 * np.trace(whole, axis1=1, axis2=2)[:, None]
    return matrix
