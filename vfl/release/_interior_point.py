"""A primal-dual interior-point method for the SVM (2): Mehrotra's predictor and corrector.

With s = Aw − 1 + ξ ≥ 0 and ς the multipliers of ξ ≥ 0, the conditions are

    Hw = Aᵀω,   Aw − 1 + ξ = s,   ρξ + θ = ω + ς,   s∘ω = 0,   ξ∘ς = 0.

Eliminating all but w from Newton's equations leaves (H + AᵀDA) dw, D = 1/(1/k + s/ω), k = ρ + ς/ξ: a
(p+1)×(p+1) system, whatever q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from vfl.release._problem import Problem
from vfl.types import Array

#: It stops when residuals, and the products beside θ, are below this share of their terms.
TOLERANCE = 1e-9
MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate, or a direction: ``w`` (p+1,), and ``s``, ``xi``, ``omega``, ``sigma`` (q,)."""

    w: Array
    s: Array
    xi: Array
    omega: Array
    sigma: Array

    def moved(self, direction: Point, step: float) -> Point:
        """The point ``step`` further along ``direction``."""
        pairs = zip(vars(self).values(), vars(direction).values(), strict=True)
        return Point(*(value + step * change for value, change in pairs))

    def longest(self, direction: Point, limit: float) -> float:
        """The longest step up to ``limit`` that keeps s, ξ, ω and ς at or above 0."""
        lowest = min(
            float((change / value).min())
            for value, change in (
                (self.s, direction.s),
                (self.xi, direction.xi),
                (self.omega, direction.omega),
                (self.sigma, direction.sigma),
            )
        )
        return min(limit, -1 / lowest) if lowest < 0 else limit

    @property
    def mu(self) -> float:
        """The mean of the products that are 0 at the optimum."""
        return float(self.s @ self.omega + self.xi @ self.sigma) / (2 * len(self.s))


class _Newton:
    """Newton's equations at one point, factored once for predictor and corrector."""

    def __init__(self, problem: Problem, at: Point):
        A = problem.A
        self._problem, self._A, self._at = problem, A, at
        self.pull = A.T @ at.omega
        self.r_w = problem.H @ at.w - self.pull
        self.r_s = A @ at.w - 1 + at.xi - at.s
        self.r_xi = problem.rho * at.xi + problem.theta - at.omega - at.sigma
        self._k = problem.rho + at.sigma / at.xi
        self._D = 1 / (1 / self._k + at.s / at.omega)

    def factor(self) -> None:
        """Factors the normal equations."""
        self._factor = _cholesky(self._problem.normal_matrix(self._D))

    def towards(self, c_s: Array, c_xi: Array) -> Point:
        """The direction in which the residuals vanish and s∘ω, ξ∘ς change by −c_s, −c_xi."""
        at = self._at
        r_xi = self.r_xi + c_xi / at.xi
        g = r_xi / self._k - self.r_s - c_s / at.omega
        w = cho_solve(self._factor, self._A.T @ (self._D * g) - self.r_w, check_finite=False)
        omega = self._D * (g - self._A @ w)
        xi = (omega - r_xi) / self._k
        return Point(w, -(c_s + at.s * omega) / at.omega, xi, omega, -(c_xi + at.sigma * xi) / at.xi)


def interior_point(problem: Problem) -> tuple[Array, Array]:
    """(w, ω), to about :data:`TOLERANCE`; the last iterate where rounding allows no more."""
    q, half = len(problem.A), problem.theta / 2
    at = Point(np.zeros(problem.A.shape[1]), np.ones(q), np.ones(q), np.full(q, half), np.full(q, half))
    for _ in range(MAX_STEPS):
        newton = _Newton(problem, at)
        if _converged(problem, newton, at):
            break
        newton.factor()
        predictor = newton.towards(at.s * at.omega, at.xi * at.sigma)
        reached = at.moved(predictor, at.longest(predictor, 1.0)).mu
        target = at.mu * (reached / at.mu) ** 3
        corrector = newton.towards(
            at.s * at.omega + predictor.s * predictor.omega - target,
            at.xi * at.sigma + predictor.xi * predictor.sigma - target,
        )
        at = at.moved(corrector, min(1.0, 0.99 * at.longest(corrector, 2.0)))
    return at.w, at.omega


def _converged(problem: Problem, newton: _Newton, at: Point) -> bool:
    terms = (abs(problem.H) @ abs(at.w)).max() + abs(newton.pull).max()
    return bool(
        abs(newton.r_w).max() <= TOLERANCE * terms
        and abs(newton.r_s).max() <= TOLERANCE
        and at.mu <= TOLERANCE * problem.theta
    )


def _cholesky(matrix: Array) -> Any:
    """A factor of ``matrix``; where rounding has made it indefinite, of it with a ridge that outweighs rounding."""
    ridge = np.finfo(float).eps * np.trace(matrix)
    for power in range(8):
        try:
            return cho_factor(matrix, check_finite=False)
        except LinAlgError:
            matrix = matrix + ridge * 10**power * np.eye(len(matrix))
    raise AssertionError("unreachable: a ridge of 1e-8 of the trace makes any normal matrix definite")
