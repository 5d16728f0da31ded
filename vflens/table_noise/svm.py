"""The regularised soft-margin SVM (2) of FAR, exact, with multipliers.

    min ½‖α‖² + (ρ/2)(β² + ‖ξ‖²) + θ 1ᵀξ   s.t.   y_i(αᵀx_i + β) ≥ 1 − ξ_i,  ξ ≥ 0,   y_i = ±1.

Multipliers ω ≥ 0 of the margins: α = Σ ω_i y_i x_i, β = Σ ω_i y_i / ρ, ξ_i = max((ω_i − θ)/ρ, 0). ω_i may
exceed θ, and Σ ω_i y_i ≠ 0 in general. Other SVMs have other solutions.

Three stages. Newton's method on a rounded hinge gives a start. A primal-dual interior-point method finds the
rows outside, on and inside the margin; in a large table it uses only the rows near the margin. With these
sets fixed, the optimum is a small linear system of all rows; rows on the wrong side change sets until none is
left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vflens.table_noise._active_set import polish
from vflens.table_noise._interior_point import interior_points
from vflens.table_noise._problem import Kkt, Problem
from vflens.table_noise._smoothing import LARGE, approach
from vflens.types import Array

#: Tolerances of the interior point: the next one follows if the sets do not settle.
TOLERANCES = (1e-8, 1e-10, 1e-12, 1e-14)
#: Rows at so many ε from the margin, at the interior point's start, rarely change sides.
FAR = 50


@dataclass(frozen=True, eq=False)
class SvmPoint:
    """``alpha`` (p,), ``beta`` and ``slack`` ξ (q,) of a classifier of q rows."""

    alpha: Array
    beta: float
    slack: Array

    def change(self, other: SvmPoint) -> float:
        """The largest relative difference from ``other``, of as many rows.

        α over its norm; β and ξ over the larger of their size and the margin, 1.
        """
        differences = (
            np.linalg.norm(other.alpha - self.alpha) / (np.linalg.norm(self.alpha) or 1.0),
            abs(other.beta - self.beta) / max(1.0, abs(self.beta)),
            abs(other.slack - self.slack).max() / max(1.0, abs(self.slack).max()),
        )
        return float(max(differences))


@dataclass(frozen=True, eq=False)
class SvmSolution(SvmPoint):
    """Also ``multipliers`` ω (q,) of the margins, and how exact the solution is.

    ``polished`` is False if the last stage failed, because its sets did not settle or by rounding. The answer
    is then the interior point's, which is not exact to rounding; ``kkt`` has its residuals.
    """

    multipliers: Array
    kkt: Kkt
    polished: bool

    def predict(self, x: Array) -> Array:
        """±1 for each row of ``x``; +1 on the boundary."""
        return np.where(x @ self.alpha + self.beta >= 0, 1.0, -1.0)


def solve_svm(x: Array, y: Array, *, theta: float, rho: float) -> SvmSolution:
    """The solution of (2) for rows ``x`` (q, p) and labels ``y`` (q,) in {−1, +1}.

    One class alone, constant columns and duplicate rows are legal; duplicates share their multipliers.

    Raises:
        ConfigError: θ or ρ is not positive.
        DataError: x is empty or not finite, or y is not ±1.
    """
    problem = Problem.of(x, y, theta=theta, rho=rho)
    w, omega, settled = _solved(problem)
    alpha, beta = problem.original(w, omega)
    kkt = problem.kkt(w, omega)
    return SvmSolution(
        alpha=alpha,
        beta=beta,
        slack=np.maximum(1 - problem.A @ w, 0.0),
        multipliers=omega,
        kkt=kkt,
        polished=(settled or kkt.to_rounding)
        and not _worse_than_nothing(x, y, alpha, beta, theta=theta, rho=rho),
    )


def _worse_than_nothing(x: Array, y: Array, alpha: Array, beta: float, *, theta: float, rho: float) -> bool:
    """Whether rounding, on return to the table's units, made the objective larger than at α = 0, β = 0.

    It does for a column at 10¹² that varies by 10⁻³, which is a step of float64 there.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        slack = np.maximum(1 - y * (x @ alpha + beta), 0)
        found = (alpha @ alpha + rho * (np.square(beta) + slack @ slack)) / 2 + theta * slack.sum()
        rounding = 1e-9 * theta * (1 + abs(x) @ abs(alpha)).max()
    return bool(found > len(y) * (theta + rho / 2) + rounding)


def _solved(problem: Problem) -> tuple[Array, Array, bool]:
    """(w, ω) of the last stage, or the best interior point, and whether the last stage settled."""
    points: list[tuple[Array, Array]] = []
    for point in _points(problem):
        exact = polish(problem, *point)
        if exact is not None and _better(problem, exact, point):
            return *exact, True
        points.append(point)
    return *min(points, key=lambda point: problem.kkt(*point).worst), False


def _points(problem: Problem) -> Iterator[tuple[Array, Array]]:
    """Yield ever better (w, ω) to polish; in a large table the first use the rows near the margin alone."""
    start = approach(problem)
    if len(problem.A) > LARGE:
        yield from _near_the_margin(problem, start)
    yield from interior_points(problem, start, TOLERANCES)


def _near_the_margin(problem: Problem, start: tuple[Array, float]) -> Iterator[tuple[Array, Array]]:
    """(w, ω) with the rows far from the margin on ``start``'s side of it, if that is the optimum."""
    reach = FAR * start[1]
    gap = 1 - problem.A @ start[0]
    near, inside = abs(gap) < reach, gap > 0
    while 0 < near.sum() < len(near) / 2:
        *_, (w, omega) = interior_points(problem.of_rows(near, inside), start, TOLERANCES[2:3])
        gap = 1 - problem.A @ w
        crossed = ~near & (inside != (gap > 0))
        if not crossed.any():
            whole = np.where(inside, problem.theta + problem.rho * gap, 0.0)
            whole[near] = omega
            yield w, whole
            return
        near |= crossed | (abs(gap) < reach)


def _better(problem: Problem, exact: tuple[Array, Array], point: tuple[Array, Array]) -> bool:
    """Whether the last stage's answer is exact, and its objective not above those of the interior point and
    of w = 0.
    """
    known = min(problem.objective(w) for w in (point[0], np.zeros_like(point[0])))
    near = known + 1e-9 * problem.theta
    return problem.kkt(*exact).exact and problem.objective(exact[0]) <= near
