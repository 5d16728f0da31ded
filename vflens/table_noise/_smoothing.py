"""The interior point's start: the SVM (2) with its hinge rounded, less and less.

    θ max(g, 0)  →  θ (g + √(g² + 4ε²))/2,   g = 1 − a_iᵀw.

The rounded problem is smooth in the p+1 numbers w, and Newton's method with a line search solves it for every
table. No row can block a step, as outlying rows block an interior point far from its path. Its solution lies
on that path: with μ = θε, s = (√(g² + 4ε²) − g)/2 + ε and ξ = s + g satisfy μ/s + μ/ξ = θ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from vflens.table_noise._problem import Problem, cholesky
from vflens.types import Array

#: The interior point is faster once at most so many rows per column, or this share of them, are within 2ε of
#: the margin.
NEAR, NEAR_SHARE = 10, 0.05
#: Tables with more rows begin with a sample, one row in SHARE.
LARGE, SHARE = 4096, 8
MAX_STEPS, MAX_TRIALS = 30, 12


def approach(problem: Problem) -> tuple[Array, float]:
    """A point w and the ε, in units of the margin, for which it nearly solves the rounded problem."""
    q, width = problem.A.shape
    w, epsilon = np.zeros(width), 1.0
    if q > LARGE:
        w, epsilon = approach(problem.sample(np.random.default_rng(0).permutation(q)[: q // SHARE]))
    gap, enough = 1 - problem.A @ w, max(width, min(NEAR * width, NEAR_SHARE * q))
    for _ in range(MAX_STEPS):
        line = _Line.newton(problem, epsilon, w, gap)
        length = line.length()
        w, gap = w + length * line.step, gap - length * line.along
        if line.promise > 0.01 * epsilon * problem.theta * q:
            continue
        near = int((abs(gap) < 2 * epsilon).sum())
        if near <= enough:
            break
        epsilon *= max(0.1, enough / near / 2)
    return w, epsilon


@dataclass(frozen=True, eq=False)
class _Line:
    """The rounded problem along Newton's ``step`` from a point with ``gap`` = 1 − Aw, which decreases by
    ``along`` = A·step.

    ``first`` and ``second`` derivative of ½wᵀHw − linearᵀw; ``promise``: the negative slope of the objective
    at 0.
    """

    problem: Problem
    epsilon: float
    gap: Array
    step: Array
    along: Array
    first: float
    second: float
    promise: float

    @classmethod
    def newton(cls, problem: Problem, epsilon: float, w: Array, gap: Array) -> _Line:
        """The line from ``w``."""
        slope, curvature = _loss(problem, epsilon, gap)
        pull = problem.H @ w - problem.linear
        gradient = pull - problem.A.T @ slope
        step, _ = dpotrs(cholesky(problem.normal_matrix(curvature)), -gradient, lower=1)
        first, second = step @ pull, step @ problem.H @ step
        return cls(problem, epsilon, gap, step, problem.A @ step, first, second, -float(gradient @ step))

    def length(self) -> float:
        """The step at which at most a fifth of the slope is left, by Newton's method between bounds."""
        t, low, high = 1.0, 0.0, np.inf
        for _ in range(MAX_TRIALS):
            slope, curvature = _loss(self.problem, self.epsilon, self.gap - t * self.along)
            rise = float(self.first + t * self.second - self.along @ slope)
            if abs(rise) <= 0.2 * self.promise:
                break
            low, high = (t, high) if rise < 0 else (low, t)
            t -= rise / float(self.second + self.along**2 @ curvature)
            if not low < t < high:
                t = (low + high) / 2 if np.isfinite(high) else 4 * low
        return t


def _loss(problem: Problem, epsilon: float, gap: Array) -> tuple[Array, Array]:
    """First and second derivative of each row's rounded loss."""
    theta, rho, inside = problem.theta, problem.rho, gap > 0
    squares = gap * gap + 4 * epsilon**2
    root = np.sqrt(squares)
    slope = theta / 2 * (1 + gap / root) + rho * gap * inside
    return slope, 2 * theta * epsilon**2 / (squares * root) + rho * inside
