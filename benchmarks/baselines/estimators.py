"""The papers' estimators, literally: one convex program or one torch loop per sample.

The oracles of ``tests/oracle`` and the baselines of the benchmarks. Without ``solver`` the programs are
solved to tight tolerances; ``solver=None`` is CVXPY's choice.
"""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
from scipy.linalg import null_space, pinv
from scipy.optimize import lsq_linear

from vflens.types import Array

cp: Any = cvxpy  # which types few of its functions
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def rcc2(A: Array, b: Array, **solver: Any) -> Array:
    """RVG (32), (33): x = A⁺b + W u, u = argmax of 1ᵀx − ‖x‖² with 0 ≤ x ≤ 1."""
    solution, W = pinv(A, rtol=1e-10) @ b, null_space(A, rcond=1e-10)
    u = cp.Variable(W.shape[1])
    x = solution + W @ u
    problem = cp.Problem(
        cp.Maximize(cp.sum(x) - cp.sum_squares(x)), [-solution <= W @ u, W @ u <= 1 - solution]
    )
    problem.solve(**(solver or {"solver": cp.CLARABEL, **TIGHT}))
    return np.asarray(solution + W @ u.value)


def cls(A: Array, b: Array, **solver: Any) -> float:
    """The least ‖A x − b‖ over the box."""
    x = cp.Variable(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.norm(A @ x - b)), [x >= 0, x <= 1])
    return float(problem.solve(**(solver or {"solver": cp.CLARABEL})))


def nearest_of_least_residual(A: Array, b: Array, center: Array) -> Array:
    """The point of the box nearest to ``center`` among those of least ‖A x − b‖.

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
        cp.Problem(cp.Minimize(cp.sum_squares(y - center[left])), equations).solve(solver=cp.CLARABEL)
        x[left] = y.value
    return np.asarray(x)


def rcc1_value(A: Array, b: Array) -> float:
    """p₁ by RVG (16): min g(α)ᵀQ(α)⁻¹g(α) − Σα_i t_i over α ≥ 0, Q(α) = Σα_i w_i w_iᵀ ⪰ I, t_i = −q_i(1 −
    q_i).
    """
    q, W = pinv(A, rtol=1e-10) @ b, null_space(A, rcond=1e-10)
    d, p = W.shape
    alpha = cp.Variable(d, nonneg=True)
    Q = W.T @ cp.diag(alpha) @ W
    g = W.T @ cp.multiply(q - 0.5, alpha)
    value = cp.matrix_frac(g, (Q + Q.T) / 2) + cp.sum(cp.multiply(q * (1 - q), alpha))
    problem = cp.Problem(cp.Minimize(value), [(Q + Q.T) / 2 >> np.eye(p)])
    return float(problem.solve(solver=cp.CLARABEL))


def rcc1(A: Array, b: Array, **solver: Any) -> Array:
    """X of RVG's relaxation before it is dualised: max Tr Δ − ‖u‖², Δ ⪰ u uᵀ, w_iᵀΔw_i + 2g_iᵀu + t_i ≤ 0, x
    = q + W u.
    """
    q, W = pinv(A, rtol=1e-10) @ b, null_space(A, rcond=1e-10)
    p = W.shape[1]
    lifted = cp.Variable((p + 1, p + 1), symmetric=True)
    delta, u = lifted[:p, :p], lifted[:p, p]
    box = cp.diag(W @ delta @ W.T) + cp.multiply(2 * q - 1, W @ u) <= q * (1 - q)
    problem = cp.Problem(
        cp.Maximize(cp.trace(delta) - cp.sum_squares(u)), [lifted >> 0, lifted[p, p] == 1, box]
    )
    problem.solve(**(solver or {"solver": cp.CLARABEL, "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10}))
    return np.asarray(q + W @ u.value)


def gia(weight: Array, log_c: Array, steps: int, learning_rate: float) -> tuple[Array, float]:
    """X and KL(ĉ‖c) of one sample after clamped Adam from 0, in torch; the adversary owns no columns here."""
    import torch

    w, target = torch.from_numpy(weight), torch.from_numpy(log_c)
    x = torch.zeros(weight.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([x], lr=learning_rate)
    for step in range(steps + 1):
        estimate = torch.log_softmax(w @ x, 0)
        loss = (estimate.exp() * (estimate - target)).sum()
        if step == steps:
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            x.clamp_(0, 1)
    return x.detach().numpy(), float(loss.detach())
