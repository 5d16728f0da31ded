"""The regularised soft-margin SVM (2) of FAR, exact, with multipliers.

    min ½‖α‖² + (ρ/2)(β² + ‖ξ‖²) + θ 1ᵀξ   s.t.   y_i(αᵀx_i + β) ≥ 1 − ξ_i,  ξ ≥ 0,   y_i = ±1.

Multipliers ω ≥ 0 of the margins: α = Σ ω_i y_i x_i, β = Σ ω_i y_i / ρ, ξ_i = max((ω_i − θ)/ρ, 0). ω_i may
exceed θ, and Σ ω_i y_i ≠ 0 in general. Other SVMs have other solutions.

Clarabel finds the rows outside, on and inside the margin; in a large table it first uses only the rows near
the margin. With these sets fixed, the optimum is a small linear system of all rows
(:mod:`vflens.table_noise._active_set`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vflens.table_noise._active_set import optimum_near
from vflens.table_noise._problem import Problem
from vflens.types import Array

#: Tolerances of Clarabel: the next one follows if the sets do not settle.
TOLERANCES = (1e-8, 1e-12)
#: A table with more rows begins with one row in SHARE, then with the share NEAR of the rows nearest to the
#: margin.
LARGE, SHARE, NEAR = 2000, 8, 0.1


@dataclass(frozen=True, eq=False)
class SvmPoint:
    """``alpha`` (p,), ``beta`` and ``slack`` ξ (q,) of a classifier of q rows."""

    alpha: Array
    beta: float
    slack: Array

    def change(self, other: "SvmPoint") -> float:
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
    """Also ``multipliers`` ω (q,) of the margins, and whether the solution is exact.

    ``polished`` is False if the sets did not settle or rounding hides the optimum. The answer is then
    Clarabel's, which is not exact to rounding.
    """

    multipliers: Array
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
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    problem = Problem.of(x, y, theta=theta, rho=rho)
    for point in _points(problem, *_undecided(x, y, theta=theta, rho=rho)):
        exact = optimum_near(problem, *point)
        if exact is not None:
            found = _solution(problem, *exact, polished=True)
            if not _worse_than_nothing(found, x, y, theta=theta, rho=rho):
                return found
    return _solution(problem, *point, polished=False)


def _solution(problem: Problem, w: Array, omega: Array, *, polished: bool) -> SvmSolution:
    """The classifier of ``w`` in the table's units."""
    alpha, beta = problem.original(w, omega)
    return SvmSolution(alpha, beta, np.maximum(1 - problem.A @ w, 0.0), omega, polished=polished)


def _worse_than_nothing(found: SvmPoint, x: Array, y: Array, *, theta: float, rho: float) -> bool:
    """Whether rounding, on return to the table's units, made the objective larger than at α = 0, β = 0.

    It does for a column at 10¹² that varies by 10⁻³, which is a step of float64 there.
    """
    alpha, beta = found.alpha, found.beta
    with np.errstate(over="ignore", invalid="ignore"):
        slack = np.maximum(1 - y * (x @ alpha + beta), 0)
        objective = (alpha @ alpha + rho * (np.square(beta) + slack @ slack)) / 2 + theta * slack.sum()
        rounding = 1e-9 * theta * (1 + abs(x) @ abs(alpha)).max()
    return bool(objective > len(y) * (theta + rho / 2) + rounding)


def _undecided(x: Array, y: Array, *, theta: float, rho: float) -> tuple[Array, Array]:
    """The rows whose side of the margin is open, and those that are inside it in a sample's classifier."""
    if len(x) <= LARGE:
        return np.ones(len(x), bool), np.ones(len(x), bool)
    rough = solve_svm(x[::SHARE], y[::SHARE], theta=SHARE * theta, rho=SHARE * rho)
    gap = 1 - y * (x @ rough.alpha + rough.beta)
    return abs(gap) <= np.quantile(abs(gap), NEAR), gap > 0


def _points(problem: Problem, near: Array, inside: Array) -> Iterator[tuple[Array, Array]]:
    """Yield ever better (w, ω). Rows that are not ``near`` stay on their side until they cross the margin."""
    for tolerance in TOLERANCES:
        crossed = near
        while crossed.any():
            w, omega = _of_rows(problem, near, inside, tolerance)
            yield w, omega
            crossed = ~near & (inside != (problem.A @ w < 1))
            near = near | crossed


def _of_rows(problem: Problem, near: Array, inside: Array, tolerance: float) -> tuple[Array, Array]:
    """Clarabel's (w, ω) if the rows that are not ``near`` are ``inside`` the margin or outside of it.

    min ½wᵀHw − Σ_settled((θ + ρ)a_iᵀw − (ρ/2)(a_iᵀw)²) + Σ_near(θξ_i + (ρ/2)ξ_i²), all over θ.
    """
    import clarabel
    from scipy import sparse

    theta, rho, A = problem.theta, problem.rho, problem.A[near]
    settled, q = problem.A[inside & ~near], len(A)
    curvature = (problem.H + rho * (settled.T @ settled)) / theta
    one = sparse.eye_array(q, format="csc")
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.direct_solve_method = "qdldl"  # one thread: the same bits on every machine
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = tolerance
    found = clarabel.DefaultSolver(
        sparse.block_diag([np.triu(curvature), rho / theta * one], format="csc"),
        np.append(-(1 + rho / theta) * settled.sum(axis=0), np.ones(q)),
        sparse.block_array([[sparse.csc_array(-A), -one], [None, -one]], format="csc"),
        np.append(-np.ones(q), np.zeros(q)),
        [clarabel.NonnegativeConeT(2 * q)],
        options,
    ).solve()
    w = np.asarray(found.x[:-q])
    omega = np.where(inside, theta + rho * np.maximum(1 - problem.A @ w, 0.0), 0.0)
    omega[near] = theta * np.maximum(found.z[:q], 0.0)
    return w, omega
