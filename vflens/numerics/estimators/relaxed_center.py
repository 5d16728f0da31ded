"""The relaxed Chebyshev centre for a whole batch, by a primal-dual interior-point method.

RCC1 (RVG (16), (31)) is: maximise Tr S over x = x₀ + W u in the box and S ⪰ 0 with G_ii ≤ v_i(x), where G = W
S Wᵀ, v_i = x_i(1 − x_i) and W (d, p) is an orthonormal basis of null A. Its dual has one unknown per feature:

    p₁ = min φ(α)  over  α ≥ 0,  Z = Wᵀ diag(α) W − I ⪰ 0,       φ(α) = max_u Σ_i α_i v_i(x₀ + W u).

The maximiser x(α) has Wᵀ(α ∘ (1 − 2x)) = 0; with N = W(Z + I)⁻¹Wᵀ, R = W Z⁻¹Wᵀ and a = dα it moves by y =
½N((1 − 2x) ∘ a) − N(a ∘ y). The central path of τ has S Z = τI and α_i s_i = τ, s_i = v_i(x) − G_ii.
Linearised, with dS = τZ⁻¹ − S − sym(S dZ Z⁻¹) (Helmberg et al. 1996) α alone remains:

    (½(1 − 2x)(1 − 2x)ᵀ ∘ N + G ∘ R + diag(s/α)) a = τ(R_ii + 1/α_i) − v_i − (second order, from the step to τ
    = 0),

the predictor and the corrector of Mehrotra (1992) on one factorisation; some 12 steps. Values and gaps are
those of feasible points, on any path: α > 0 and Z ≻ 0 (φ(α) ≥ p₁), and fG with S ≻ 0 and f = min v_i/G_ii (f
Tr G ≤ p₁). Thus ‖x(α) − x₁‖² ≤ φ(α) − p₁ ≤ gap (``docs/estimators.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators import cholesky

#: α and τ of the start, the gap at which a row is solved, and the maximum of steps.
ALPHA, TAU, SMALL, STEPS = 1.5, 0.2, 3e-8, 30
#: A step covers at most this share of the way to the boundary, shrinks by ``CUT`` while beyond it, and aims
#: at a τ of at least ``FALL`` times the last.
SHARE, CUT, FALL = 0.95, 0.8, 0.1
#: Rows in one block: some d² numbers each, in the caches.
CHUNK = 2**17
#: Entries of W up to this are rounding.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Center:
    """``x`` (N, d), ``value`` (N,) = φ(α) ≥ p₁, and ``gap`` (N,) ≥ φ(α) − p₁, ≥ ‖x − x₁‖²; infinite without a
    feasible point.
    """

    x: Array
    value: Array
    gap: Array


def relaxed_center(W: Array, x0: Array) -> Center:
    """RCC1 for ``W`` (d, p), an orthonormal basis of null A, and ``x0`` (N, d), any solutions of A x = b.

    Rows without a point strictly inside the box keep a large gap.
    """
    free = (np.abs(W) > NOTHING).any(axis=1)
    if not free.all():  # a determined coordinate adds no constraint
        part, x = relaxed_center(W[free], x0[:, free]), x0.copy()
        x[:, free] = part.x
        return Center(x, part.value, part.gap)
    n, d = x0.shape
    best = Center(np.full((n, d), 0.5), np.full(n, np.inf), np.full(n, np.inf))
    size = max(16, CHUNK // d**2)
    for first in range(0, n, size):
        at = slice(first, first + size)
        _improve(_Rows.start(W, x0[at]), Center(best.x[at], best.value[at], best.gap[at]))
    return best


def _improve(rows: _Rows, best: Center) -> None:
    """Keep in ``best`` each row's point of least gap."""
    left = np.arange(len(best.x))
    for _ in range(STEPS):
        here = _Here.of(rows)
        value, gap = here.bounds(rows.alpha)
        better = gap < best.gap[left]
        to = left[better]
        best.x[to], best.value[to], best.gap[to] = here.x[better], value[better], gap[better]
        factor = cholesky.factor(_batch_last(here.curvature(rows)))
        stay = (gap > SMALL) & np.isfinite(factor[-1, -1])
        left = left[stay]
        if not len(left):
            break
        if not stay.all():
            rows, here, factor = rows.take(stay), here.take(stay), factor[:, :, stay]
        rows.advance(here, factor)


@dataclass(eq=False)
class _Rows:
    """The state of rows: ``x0``, ``alpha`` and ``slack`` = s (N, d), ``S`` (N, p, p), and Z's Cholesky
    factor (p, p, N).
    """

    W: Array
    x0: Array
    alpha: Array
    slack: Array
    S: Array
    factor: Array

    @classmethod
    def start(cls, W: Array, x0: Array) -> _Rows:
        """α, s and S multiples of 1 and I on the path of :data:`TAU`."""
        (n, d), p = x0.shape, W.shape[1]
        S = np.repeat(TAU / (ALPHA - 1) * np.eye(p)[None], n, axis=0)
        rows = cls(W, x0, np.full((n, d), ALPHA), np.full((n, d), TAU / ALPHA), S, S)
        rows.factor = rows.factored(rows.alpha, 1.0)
        return rows

    def take(self, stay: Array) -> _Rows:
        """Some of the rows."""
        x0, alpha, slack, S = (array[stay] for array in (self.x0, self.alpha, self.slack, self.S))
        return _Rows(self.W, x0, alpha, slack, S=S, factor=self.factor[:, :, stay])

    def factored(self, alpha: Array, shift: float) -> Array:
        """Cholesky factor of Wᵀ diag(α) W − shift·I."""
        M, i = cholesky.gram(self.W, alpha.T), np.arange(self.W.shape[1])
        M[i, i] -= shift
        return cholesky.factor(M)

    def advance(self, here: _Here, factor: Array) -> None:
        """A trial step to τ = 0, then the corrected step to a τ > 0; ``factor`` is that of the matrix in the
        module's equation.
        """
        N, R, G, G_ii, R_ii = here.N, here.R, here.G, _diagonal(here.G), _diagonal(here.R)
        alpha, slack, v, slope = self.alpha, self.slack, here.v, 1 - 2 * here.x

        a = cholesky.solve(factor, -v.T).T
        dG, ds = -G - _symmetric((G * a[:, None]) @ R), -slack - slack / alpha * a
        tau = self._tau(G_ii, a, _diagonal(dG), ds)
        y = _times(N, slope * a) / 2
        curved = np.einsum("nij,nj,nij->ni", dG, a, R) - slope * _times(N, a * y) - y * y
        crossed = a * ds / alpha

        da = cholesky.solve(factor, (tau * (R_ii + 1 / alpha) - v - curved - crossed).T).T
        ds = tau / alpha - slack - slack / alpha * da - crossed
        dG = tau[:, :, None] * R - G - (G * da[:, None] + dG * a[:, None]) @ R
        dS = _symmetric(self.W.T @ dG @ self.W)
        self._move_dual(da)
        self._move_primal(ds, dS)

    def _tau(self, G: Array, da: Array, dG: Array, ds: Array) -> Array:
        """The next τ (N, 1), from the τ that the trial reaches; G and dG are diagonals."""

        def tau(alpha: Array, G: Array, slack: Array) -> Array:  # (αᵀs + Tr S Z) / (d + p)
            total: Array = (alpha * slack + (alpha - 1) * G).sum(axis=1, keepdims=True)
            return total / sum(self.W.shape)

        dual, primal = _room(self.alpha, da, 1.0)[:, None], _room(self.slack, ds, 1.0)[:, None]
        before = tau(self.alpha, G, self.slack)
        after = tau(self.alpha + dual * da, G + primal * dG, self.slack + primal * ds)
        aim: Array = before * np.clip((after / before) ** 3, FALL, 1)
        return aim

    def _move_dual(self, step: Array) -> None:
        length = _room(self.alpha, step, SHARE)
        self.factor, length = _inside(
            lambda t, rows: self.factored(self.alpha[rows] + t[:, None] * step[rows], 1.0), length
        )
        self.alpha = self.alpha + length[:, None] * step

    def _move_primal(self, step: Array, S_step: Array) -> None:
        def factored(t: Array, rows: Array) -> Array:
            return cholesky.factor(_batch_last(self.S[rows] + t[:, None, None] * S_step[rows]))

        _, length = _inside(factored, _room(self.slack, step, SHARE))
        self.slack = self.slack + length[:, None] * step
        self.S = self.S + length[:, None, None] * S_step


@dataclass(frozen=True, eq=False)
class _Here:
    """Derived from :class:`_Rows`: x(α) and v (N, d); N, R and G (N, d, d)."""

    x: Array
    v: Array
    N: Array
    R: Array
    G: Array

    @classmethod
    def of(cls, rows: _Rows) -> _Here:
        """The maximiser x(α) and the matrices of the step."""
        N = _projected(rows.factored(rows.alpha, 0.0), rows.W)
        x = rows.x0 + _times(N, rows.alpha * (0.5 - rows.x0))
        return cls(x, x * (1 - x), N, _projected(rows.factor, rows.W), rows.W @ rows.S @ rows.W.T)

    def take(self, stay: Array) -> _Here:
        """Some of the rows."""
        return _Here(*(array[stay] for array in (self.x, self.v, self.N, self.R, self.G)))

    def bounds(self, alpha: Array) -> tuple[Array, Array]:
        """φ(α), and a bound on φ(α) − p₁."""
        G = _diagonal(self.G)
        fits = np.clip((self.v / G).min(axis=1), 0, 1)
        value = (alpha * self.v).sum(axis=1)
        return value, value - fits * G.sum(axis=1)

    def curvature(self, rows: _Rows) -> Array:
        """The matrix of the step (N, d, d)."""
        slope = 1 - 2 * self.x
        H: Array = self.N * (slope[:, :, None] * (slope[:, None] / 2))
        H += self.G * self.R
        diagonal = np.arange(H.shape[1])
        H[:, diagonal, diagonal] += rows.slack / rows.alpha
        return H


def _projected(factor: Array, W: Array) -> Array:
    """W (L Lᵀ)⁻¹ Wᵀ (N, d, d) for every L of ``factor``."""
    half = np.ascontiguousarray(np.moveaxis(cholesky.forward(factor, W.T), -1, 0))
    product: Array = half.transpose(0, 2, 1) @ half
    return product


def _batch_last(matrices: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(matrices, 0, -1))


def _diagonal(matrices: Array) -> Array:
    diagonal: Array = np.einsum("nii->ni", matrices)
    return diagonal


def _symmetric(matrices: Array) -> Array:
    half: Array = (matrices + matrices.transpose(0, 2, 1)) / 2
    return half


def _times(matrices: Array, vectors: Array) -> Array:
    product: Array = (matrices @ vectors[:, :, None])[:, :, 0]
    return product


def _room(point: Array, step: Array, share: float) -> Array:
    """Length (N,) of the step, up to 1, that covers at most ``share`` of the way from ``point`` > 0 to 0."""
    length: Array = share / np.maximum((-step / point).max(axis=1), share)
    return length


def _inside(factored: Any, length: Array) -> tuple[Array, Array]:
    """The factors at the step's end and its length, cut until the factors exist."""
    factor = factored(length, np.arange(len(length)))
    for _ in range(STEPS):
        outside = np.flatnonzero(~np.isfinite(factor[-1, -1]))
        if not len(outside):
            break
        length[outside] *= CUT
        factor[:, :, outside] = factored(length[outside], outside)
    return factor, length
