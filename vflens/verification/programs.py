"""The definitions as formulas: one convex program in CVXPY for each row, nothing shared with our numerics.

Letters as in ``docs/notation.md``: A (m, d), b (m,), W a basis of the null space of A. Without ``solver`` the
programs are solved by Clarabel to tight tolerances; ``solver=None`` is CVXPY's choice.
"""

import warnings
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.linalg import null_space, pinv
from scipy.optimize import lsq_linear

from vflens.types import Array
from vflens.verification import cvxpy

cp: Any = cvxpy  # which types few of its functions
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
RANK = 1e-10  # a singular value up to this share of the largest is 0
NEAR = 1e-8  # a point so near to the box counts as in it


class NoSolutionError(Exception):
    """The box holds no solution of A x = b."""


def nearest(A: Array, b: Array, center: Array) -> Array:
    """Argmin ‖x − center‖² with A x = A A⁺ b (RVG §V); A A⁺ b is b where A x = b has solutions."""
    x = cp.Variable(A.shape[1])
    return _solved(cp.Minimize(cp.sum_squares(x - center)), [A @ x == A @ _least_norm(A, b)], x)


def lmmse(A: Array, b: Array, mean: Array, covariance: Array) -> Array:
    """Argmin (x − μ)ᵀ K⁻¹ (x − μ) with A x = b, written in u with x = μ + K^½ u: K may be singular."""
    sizes, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(sizes.clip(0))
    return np.asarray(mean + root @ nearest(A @ root, b - A @ mean, np.zeros(len(mean))))


def clipped(point: Array) -> Array:
    """Argmin ‖x − point‖² with 0 ≤ x ≤ 1."""
    x = cp.Variable(len(point))
    return _solved(cp.Minimize(cp.sum_squares(x - point)), [x >= 0, x <= 1], x)


def rcc2(A: Array, b: Array, **solver: Any) -> Array:
    """RVG (32), (33): x = A⁺b + W u, u = argmax of 1ᵀx − ‖x‖² with 0 ≤ x ≤ 1.

    Raises:
        NoSolutionError: no such u.
    """
    solution, W = _solutions(A, b)
    if not W.shape[1]:
        return solution
    u = cp.Variable(W.shape[1])
    x = solution + W @ u
    box = [-solution <= W @ u, W @ u <= 1 - solution]
    return np.asarray(solution + W @ _solved(cp.Maximize(cp.sum(x) - cp.sum_squares(x)), box, u, **solver))


def rcc1(A: Array, b: Array, **solver: Any) -> Array:
    """The x = q + W u of RVG (16), (31): max Tr Δ − ‖u‖² with Δ ⪰ u uᵀ, w_iᵀΔw_i + 2g_iᵀu + t_i ≤ 0.

    Raises:
        NoSolutionError: no such u.
    """
    q, W = _solutions(A, b)
    p = W.shape[1]
    if not p:
        return q
    lifted = cp.Variable((p + 1, p + 1), symmetric=True)
    delta, u = lifted[:p, :p], lifted[:p, p]
    box = cp.diag(W @ delta @ W.T) + cp.multiply(2 * q - 1, W @ u) <= q * (1 - q)
    given = [lifted >> 0, lifted[p, p] == 1, box]
    tolerances = solver or {"solver": cp.CLARABEL, "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10}
    found = _solved(cp.Maximize(cp.trace(delta) - cp.sum_squares(u)), given, u, **tolerances)
    return np.asarray(q + W @ found)


def chebyshev(A: Array, b: Array) -> Array:
    """argmin_c max ‖v − c‖ over the vertices v of {x : A x = b, 0 ≤ x ≤ 1} (RVG (11)).

    Raises:
        NoSolutionError: there is no vertex.
    """
    q, W = _solutions(A, b)
    corners = _vertices(q, W)
    if not len(corners):
        raise NoSolutionError
    c, r = cp.Variable(len(q)), cp.Variable()
    return _solved(cp.Minimize(r), [cp.norm(corners - c[None], axis=1) <= r], c)


def nearest_of_least_residual(A: Array, b: Array, center: Array) -> Array:
    """The point of the box nearest to ``center`` among those of least ‖A x − b‖ (RVG §VIII).

    The least by SciPy's active-set method. The slope there is the same at every minimiser and drives them to
    the same bounds; over the coordinates that are left, the nearest one that keeps A x is a program for
    CVXPY.
    """
    best = lsq_linear(A, b, bounds=(0, 1), method="bvls", tol=1e-14).x
    slope = A.T @ (A @ best - b)
    left = np.abs(slope) <= 1e-7
    x = best.copy()
    x[~left] = slope[~left] < 0
    y = cp.Variable(int(left.sum()))
    equations = [A[:, left] @ y == A @ best - A[:, ~left] @ x[~left], y >= 0, y <= 1]
    if left.any():
        cost = cp.Minimize(cp.sum_squares(y - center[left]))
        x[left] = _solved(cost, equations, y)
    return np.asarray(x)


def svm(x: Array, y: Array, *, theta: float, rho: float) -> tuple[Array, float, Array]:
    """(α, β, ξ) of FAR (2): min ½‖α‖² + (ρ/2)(β² + ‖ξ‖²) + θ 1ᵀξ, y_i(αᵀx_i + β) ≥ 1 − ξ_i, ξ ≥ 0."""
    alpha, beta, xi = cp.Variable(x.shape[1]), cp.Variable(), cp.Variable(len(x))
    cost = 0.5 * cp.sum_squares(alpha) + rho / 2 * (beta**2 + cp.sum_squares(xi)) + theta * cp.sum(xi)
    margins = cp.multiply(y, x @ alpha + beta) >= 1 - xi
    found = _solved(cp.Minimize(cost), [margins, xi >= 0], alpha)
    return found, float(beta.value), np.asarray(xi.value)


def _solved(objective: Any, given: list[Any], variable: Any, **solver: Any) -> Array:
    """The value of ``variable`` at the optimum; where rounding stops the solver, to its usual tolerances."""
    problem = cp.Problem(objective, given)
    with warnings.catch_warnings(action="ignore"):  # of a solution that is not exact: the caller measures it
        try:
            problem.solve(**(solver or {"solver": cp.CLARABEL, **TIGHT}))
        except cp.SolverError:
            problem.solve(solver=cp.CLARABEL)
    if variable.value is None:
        raise NoSolutionError
    return np.asarray(variable.value)


def _least_norm(A: Array, b: Array) -> Array:
    return np.asarray(pinv(A, rtol=RANK) @ b) if A.size else np.zeros(A.shape[1])


def _solutions(A: Array, b: Array) -> tuple[Array, Array]:
    """A⁺b and W.

    Raises:
        NoSolutionError: W has no column, and A⁺b is not in the box.
    """
    solution, W = _least_norm(A, b), null_space(A, rcond=RANK) if A.size else np.eye(A.shape[1])
    if not W.shape[1] and abs(solution - solution.clip(0, 1)).max(initial=0.0) > NEAR:
        raise NoSolutionError
    return solution, W


def _vertices(q: Array, W: Array) -> Array:
    """The points (n, d) of q + W u in the box where p coordinates at their bounds determine u (p,)."""
    p = W.shape[1]
    bounds = np.array(list(product((0.0, 1.0), repeat=p))).reshape(2**p, p)
    found = [np.empty((0, len(q)))]
    for held in map(list, combinations(range(len(q)), p)):
        if np.linalg.matrix_rank(W[held], tol=RANK) == p:
            points = q + np.linalg.solve(W[held], (bounds - q[held]).T).T @ W.T
            found.append(points[(abs(points - points.clip(0, 1)) <= NEAR).all(axis=1)])
    return np.concatenate(found)
