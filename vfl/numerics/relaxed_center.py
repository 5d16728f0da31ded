"""The relaxed Chebyshev centre by its dual, for a whole batch: an interior-point method in d unknowns.

RCC1 (RVG (16), (31)) is: maximise Tr S over x = x₀ + W u in the box and S ⪰ 0 with (W S Wᵀ)_ii ≤ v_i(x), where
v_i = x_i(1 − x_i) and W (d, p) is an orthonormal basis of null A. Its dual has one unknown per feature:

    p₁ = min φ(α)  over  α ≥ 0,  M = Wᵀ diag(α) W ⪰ I,       φ(α) = max_u Σ_i α_i v_i(x₀ + W u).

The maximiser x(α) has Wᵀ(α ∘ (1 − 2x)) = 0, and with N = W M⁻¹Wᵀ, R = W(M − I)⁻¹Wᵀ:

    ∂φ/∂α_i = v_i,                              ∂²φ/∂α_i∂α_j = ½(1 − 2x_i)(1 − 2x_j) N_ij,
    ∂/∂α_i of −log det(M − I) = −R_ii,          second derivative R_ij².

Newton steps on φ(α) − τ(log det(M − I) + Σ log α_i) with τ falling to 0. On the way G = τR ⪰ 0 is feasible up to a factor,
which gives the gap. For any dual feasible α, ‖x(α) − x₁‖² ≤ φ(α) − p₁ (``docs/estimators.md``), so that
the gap bounds the error of the estimate too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vfl.numerics import cholesky

Array: TypeAlias = npt.NDArray[Any]

#: The first and last τ, and what it falls by after a long step.
FIRST, LAST, FALL = 0.1, 1e-9, 0.1
#: How close to the path the last point is, as a Newton decrement, and the most Newton steps.
CENTERED, STEPS = 0.05, 40
#: Rows that are worked on together: some d² numbers each, in the caches.
CHUNK = 2**19


@dataclass(frozen=True, eq=False)
class Center:
    """``x`` (N, d), ``value`` (N,) = φ(α) ≥ p₁, and ``gap`` (N,) ≥ φ(α) − p₁, ≥ ‖x − x₁‖²; infinite where nothing was found.

    Known fault: the gap holds where the last Newton decrement is below 1. Rows that end after :data:`STEPS` with a larger
    one can have a gap too small, even negative, though x agrees with a conic solver.
    """

    x: Array
    value: Array
    gap: Array


def relaxed_center(W: Array, x0: Array) -> Center:
    """RCC1 for ``W`` (d, p), an orthonormal basis of null A, and ``x0`` (N, d), any solutions of A x = b.

    Rows without a point strictly inside the box end with a gap that is not small.
    """
    n, d = x0.shape
    x, value, gap = np.full((n, d), 0.5), np.full(n, np.inf), np.full(n, np.inf)
    size = max(16, CHUNK // d**2)
    for first in range(0, n, size):
        path = _Path(
            W, np.ascontiguousarray(x0[first : first + size].T), np.arange(first, min(first + size, n))
        )
        for k in range(STEPS):
            if not len(path.rows):
                break
            done, at, bound, lack = path.advance(last=k == STEPS - 1)
            x[done], value[done], gap[done] = at.T, bound, lack
    return Center(x, value, gap)


class _Path:
    """Rows on their way along the central path, the batch in the last axis; rows that arrived leave it."""

    def __init__(self, W: Array, x0: Array, rows: Array) -> None:
        self.W, self.x0, self.rows = W, x0, rows
        self._i, self._j = np.tril_indices(W.shape[1])
        self._pairs = (W[:, self._i] * W[:, self._j]).T.copy()
        self.alpha, self.tau = np.full_like(x0, 2.0), np.full(len(rows), FIRST)
        self._M, self._Z = self._factor(self.alpha, 0.0), self._factor(self.alpha, 1.0)

    def advance(self, *, last: bool) -> tuple[Array, Array, Array, Array]:
        """One Newton step. Returns the rows that needed none any more (``last``: all), with their x (d, n), φ and gap."""
        u = cholesky.solve(self._M, self.W.T @ (self.alpha * (0.5 - self.x0)))
        x = self.x0 + self.W @ u
        v, (H, R) = x * (1 - x), self._curvature(1 - 2 * x)
        step = cholesky.solve(cholesky.factor(H), self.tau * (R + 1 / self.alpha) - v)
        downhill = ((v - self.tau * (R + 1 / self.alpha)) * step).sum(axis=0)
        decrement = np.sqrt(np.maximum(-downhill, 0) / self.tau)
        lost = ~np.isfinite(step[0])
        done = ~lost & ((self.tau <= LAST) & (decrement < CENTERED) | last)
        value, gap = self._bounds(x, v, step)
        result = self.rows[done], x[:, done], value[done], gap[done]
        stay = ~(done | lost)
        self._keep(stay)
        if len(self.rows):
            self._move(step[:, stay], decrement[stay])
        return result

    def _bounds(self, x: Array, v: Array, step: Array) -> tuple[Array, Array]:
        """φ(α), and by how much it exceeds the value of a primal feasible point, to first order that after ``step``.

        G = W S Wᵀ with S = τ(Z⁻¹ − Z⁻¹ Wᵀdiag(step)W Z⁻¹), Z = M − I, is positive semidefinite for short steps,
        and Newton's equation says that G_ii = v_i + (1 − 2x_i) y_i − τ/α_i (1 − step_i/α_i), where x moves by y.
        """
        slope = 1 - 2 * x
        y = self.W @ cholesky.solve(self._M, self.W.T @ (slope * step)) / 2
        G = v + slope * y - self.tau / self.alpha * (1 - step / self.alpha)
        allowed = (x + y) * (1 - x - y)
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = np.clip((allowed / G).min(axis=0), 0, 1)
        value = (self.alpha * v).sum(axis=0)
        return value, value - fits * G.sum(axis=0)

    def _factor(self, alpha: Array, shift: float) -> Array:
        """Of Wᵀ diag(α) W − shift·I."""
        p = self.W.shape[1]
        M = np.empty((p, p, alpha.shape[1]))
        M[self._i, self._j] = self._pairs @ alpha
        M[np.arange(p), np.arange(p)] -= shift
        return cholesky.factor(M)

    def _curvature(self, slope: Array) -> tuple[Array, Array]:
        """The Hessian, its lower triangle of (d, d, N), and the diagonal (d, N) of R; ``slope`` = 1 − 2x."""
        d = len(slope)
        Z, M = (cholesky.forward(L, self.W.T) for L in (self._Z, self._M))
        H, R = np.empty((d, d, slope.shape[1])), np.empty_like(slope)
        for i in range(d):
            r = np.einsum("pn,pjn->jn", Z[:, i], Z[:, i:])
            R[i] = r[0]
            H[i:, i] = np.einsum("pn,pjn->jn", M[:, i], M[:, i:])
            H[i:, i] *= slope[i:] * (slope[i] / 2)
            r *= r
            r *= self.tau
            H[i:, i] += r
            H[i, i] += self.tau / self.alpha[i] ** 2
        return H, R

    def _move(self, step: Array, decrement: Array) -> None:
        """Along the step, as far as α > 0 and M − I ≻ 0 allow; at the last τ no farther than descent is certain."""
        length = np.minimum(1, 0.95 / np.maximum((-step / self.alpha).max(axis=0), 0.95))
        careful = (self.tau <= LAST) & (decrement > 1.5)
        length[careful] = np.minimum(length, 1 / (1 + decrement))[careful]
        self._Z = self._factor(self.alpha + length * step, 1.0)
        for _ in range(STEPS):
            outside = np.flatnonzero(np.isnan(self._Z[-1, -1]))
            if not len(outside):
                break
            length[outside] *= 0.6
            trial = self.alpha[:, outside] + length[outside] * step[:, outside]
            self._Z[:, :, outside] = self._factor(trial, 1.0)
        self.alpha += length * step
        self._M = self._factor(self.alpha, 0.0)
        self.tau = np.where(length > 0.7, np.maximum(FALL * self.tau, LAST), self.tau)

    def _keep(self, stay: Array) -> None:
        if not stay.all():
            self.rows, self.tau = self.rows[stay], self.tau[stay]
            self.x0, self.alpha = self.x0[:, stay], self.alpha[:, stay]
