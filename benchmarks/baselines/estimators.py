"""The papers' estimators, literally: one convex program or one torch loop per sample.

The oracles of ``tests/oracle`` and the baselines of the benchmarks, beside the programs that define the
estimators (:mod:`vflens.verification.programs`).
"""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
from scipy.linalg import null_space, pinv

from vflens.types import Array

cp: Any = cvxpy  # which types few of its functions


def cls(A: Array, b: Array, **solver: Any) -> float:
    """The least ‖A x − b‖ over the box."""
    x = cp.Variable(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.norm(A @ x - b)), [x >= 0, x <= 1])
    return float(problem.solve(**(solver or {"solver": cp.CLARABEL})))


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
