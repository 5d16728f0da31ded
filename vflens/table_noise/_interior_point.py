"""A primal-dual interior-point method for the SVM (2): Mehrotra's predictor and corrector.

With s = Aw − 1 + ξ ≥ 0 and ς the multipliers of ξ ≥ 0, the conditions are

    Hw = Aᵀω,   Aw − 1 + ξ = s,   ρξ + θ = ω + ς,   s∘ω = 0,   ξ∘ς = 0.

Eliminating all but w from Newton's equations leaves (H + AᵀDA) dw, D = 1/(1/k + s/ω), k = ρ + ς/ξ: a
(p+1)×(p+1) system for every q.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from vflens.table_noise._problem import Problem, cholesky
from vflens.types import Array

MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate or a direction: ``w`` (p+1,), ``slack`` (2, q) = (s, ξ), ``multiplier`` (2, q) = (ω, ς)."""

    w: Array
    slack: Array
    multiplier: Array

    def moved(self, direction: Point, step: float) -> Point:
        """The point at ``step`` along ``direction``."""
        return Point(
            self.w + step * direction.w,
            self.slack + step * direction.slack,
            self.multiplier + step * direction.multiplier,
        )

    def longest(self, direction: Point, limit: float) -> float:
        """The longest step up to ``limit`` that keeps slacks and multipliers at or above 0."""
        lowest = min((direction.slack / self.slack).min(), (direction.multiplier / self.multiplier).min())
        return min(limit, -1 / float(lowest)) if lowest < 0 else limit

    @property
    def mu(self) -> float:
        """The mean of the products; it is 0 at the optimum."""
        return float(np.vdot(self.slack, self.multiplier)) / self.slack.size


class _Newton:
    """Newton's equations at one point, with one factor for predictor and corrector."""

    def __init__(self, problem: Problem, at: Point):
        (s, xi), (omega, sigma) = at.slack, at.multiplier
        self._problem, self._at = problem, at
        self._pull = problem.A.T @ omega
        self._r_w = problem.H @ at.w - problem.linear - self._pull
        self._r_s = problem.A @ at.w - 1 + xi - s
        self._r_xi = problem.rho * xi + problem.theta - omega - sigma
        self._k = problem.rho + sigma / xi
        self._D = 1 / (1 / self._k + s / omega)

    def converged(self, tolerance: float) -> bool:
        """Whether residuals and the gap of the objective are below this share of their terms."""
        at, H = self._at, self._problem.H
        xi = at.slack[1]
        objective = at.w @ H @ at.w / 2 + self._problem.theta * xi.sum() + self._problem.rho / 2 * (xi @ xi)
        terms = (abs(H) @ abs(at.w)).max() + abs(self._pull).max()
        return bool(
            at.mu * at.slack.size <= tolerance * objective
            and abs(self._r_w).max() <= tolerance * terms
            and abs(self._r_s).max() <= tolerance
        )

    def factor(self) -> None:
        """Factor the normal equations."""
        self._factor = cholesky(self._problem.normal_matrix(self._D))

    def towards(self, products: Array) -> Point:
        """The direction that removes the residuals and in which slack∘multiplier changes by −``products`` (2,
        q).
        """
        A, at = self._problem.A, self._at
        c_xi = products[1] / at.slack[1]
        r_xi = self._r_xi + c_xi
        g = r_xi / self._k - self._r_s - products[0] / at.multiplier[0]
        w, _ = dpotrs(self._factor, A.T @ (self._D * g) - self._r_w, lower=1)
        omega = self._D * (g - A @ w)
        xi = (omega - r_xi) / self._k
        s = -(products[0] + at.slack[0] * omega) / at.multiplier[0]
        return Point(w, np.stack([s, xi]), np.stack([omega, -c_xi - at.multiplier[1] * xi / at.slack[1]]))


def interior_points(
    problem: Problem, start: tuple[Array, float], tolerances: Sequence[float]
) -> Iterator[tuple[Array, Array]]:
    """Yield (w, ω) when the path reaches the next, smaller one of ``tolerances``, and where rounding ends it.

    ``start``: w and ε near the solution of the rounded problem, see :mod:`vflens.table_noise._smoothing`.
    """
    at = _on_the_path(problem, *start)
    waiting = list(tolerances)
    for _ in range(MAX_STEPS):
        newton = _Newton(problem, at)
        if newton.converged(waiting[0]):
            yield at.w, at.multiplier[0]
            waiting.pop(0)
            if not waiting:
                return
        newton.factor()
        products = at.slack * at.multiplier
        predictor = newton.towards(products)
        reached = at.moved(predictor, at.longest(predictor, 1.0)).mu
        target = at.mu * (reached / at.mu) ** 3
        corrector = newton.towards(products + predictor.slack * predictor.multiplier - target)
        at = at.moved(corrector, min(1.0, 0.99 * at.longest(corrector, 2.0)))
    yield at.w, at.multiplier[0]


def _on_the_path(problem: Problem, w: Array, epsilon: float) -> Point:
    """The point with this w, s∘ω = ξ∘ς = θε, and residuals 0 but for Hw = Aᵀω and the ρ in ω."""
    gap, mu = 1 - problem.A @ w, problem.theta * epsilon
    root = np.sqrt(gap * gap + 4 * epsilon**2)
    slack = np.stack([root - gap, root + gap]) / 2 + epsilon
    multiplier = mu / slack
    multiplier[0] += problem.rho * np.maximum(gap, 0)
    return Point(w, slack, multiplier)
