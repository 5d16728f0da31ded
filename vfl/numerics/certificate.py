"""When the two relaxed Chebyshev centres are one: the certificate RCC1 = RCC2 (``docs/estimators.md``).

With v_i = x_i(1 − x_i) at the RCC2 point, RCC1 and RCC2 have equal optimal values exactly if some G ⪰ 0 with A G = 0 has the
diagonal v; that is, if vectors g_i of length √v_i have Σ_i A_ji g_i = 0 for every equation j.

1. Refuted if P_ii √v_i > Σ_{j≠i} |P_ij| √v_j for some i, P = A⁺A: the vectors cannot close.
2. One shot: y with ((I − P) ∘ (I − P)) y = v gives G = (I − P) diag(y) (I − P) that diagonal; it certifies if G ⪰ 0.
3. Else the mixing method: minimise ‖Σ_i √v_i q_i u_iᵀ‖_F over unit vectors u_i in R^m, m = ⌈√(2d)⌉ + 1, one
   after the other, exactly. A value of 0 certifies; a plateau above 0 proves nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vfl.numerics import cholesky

Array: TypeAlias = npt.NDArray[Any]

#: ‖Σ √v_i q_i u_iᵀ‖_F up to this counts as 0. RCC1's value then misses RCC2's by no more than some √d times it.
CLOSED = 1e-11

#: Rounds of the mixing method, and its sweeps in one. A row leaves when at its pace the rounds will not do.
ROUNDS, SWEEPS = 20, 5


def certified(Q: Array, W: Array, v: Array) -> Array:
    """Whether RCC1 = RCC2 is certain (N,), for ``v`` (N, d) and bases ``Q`` (d, r), ``W`` (d, p) of A's rows and null space."""
    s = np.sqrt(v)
    size = np.abs(Q @ Q.T)
    possible: Array = (2 * s * np.diag(size) <= s @ size + CLOSED).all(axis=1)
    if Q.shape[1] == 1:  # one equation: the polygon inequality is also enough
        return possible
    result = np.zeros(len(v), bool)
    left = np.flatnonzero(possible)
    result[left] = _one_shot(W, v[left])
    left = left[~result[left]]
    result[left] = _mixing(Q, s[left])
    return result


def _one_shot(W: Array, v: Array) -> Array:
    squares = (W @ W.T) ** 2
    y = v @ np.linalg.pinv(squares, rcond=1e-12, hermitian=True)
    exact = np.abs(y @ squares - v).max(axis=1, initial=0.0) < 1e-13
    positive = np.isfinite(cholesky.factor(cholesky.gram(W, y.T))[-1, -1])
    certain: Array = exact & positive
    return certain


def _mixing(Q: Array, s: Array) -> Array:
    """Coordinate descent from one random start, the batch in the last axis."""
    d = len(Q)
    m, closed = int(np.ceil(np.sqrt(2 * d))) + 1, np.zeros(len(s), bool)
    start = np.random.default_rng(0).normal(size=(d, m, 1))
    left, s = np.arange(len(s)), np.ascontiguousarray(s.T)
    u = np.repeat(start / np.linalg.norm(start, axis=1, keepdims=True), len(left), axis=2)
    before = np.full(len(left), np.inf)
    for rest in reversed(range(ROUNDS)):
        total = np.einsum("dr,dmn->rmn", Q, s[:, None] * u)
        for _ in range(SWEEPS):
            for i in range(d):
                total -= Q[i, :, None, None] * (s[i] * u[i])
                pull = np.einsum("r,rmn->mn", Q[i], total)
                length = np.sqrt((pull * pull).sum(axis=0))
                u[i] = np.where(length > 0, -pull / np.maximum(length, 1e-300), u[i])
                total += Q[i, :, None, None] * (s[i] * u[i])
        value = np.sqrt((total * total).sum(axis=(0, 1)))
        closed[left[value <= CLOSED]] = True
        go = (value > CLOSED) & (value * (value / before) ** rest < CLOSED)
        left, s, u, before = left[go], s[:, go], u[:, :, go], value[go]
        if not len(left):
            break
    return closed
