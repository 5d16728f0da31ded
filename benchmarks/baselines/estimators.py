"""The papers' estimators as their scripts compute them: one convex program, or one torch loop, per sample."""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
from scipy.linalg import null_space, pinv

from vfl.types import Array

cp: Any = cvxpy


def rcc2(A: Array, b: Array, **solver: Any) -> Array:
    """RVG (33) with CVXPY's default solver, or another."""
    x = cp.Variable(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 0.5)), [A @ x == b, x >= 0, x <= 1])
    problem.solve(**solver)
    return np.asarray(x.value)


def cls(A: Array, b: Array) -> Array:
    """The box-constrained least squares of RVG §V with CVXPY's default solver: one of its minimisers."""
    x = cp.Variable(A.shape[1])
    cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b)), [x >= 0, x <= 1]).solve()
    return np.asarray(x.value)


def rcc1(A: Array, b: Array) -> Array:
    """RVG's relaxation as a semidefinite program, with Clarabel."""
    q, W = pinv(A) @ b, null_space(A)
    p = W.shape[1]
    lifted = cp.Variable((p + 1, p + 1), symmetric=True)
    delta, u = lifted[:p, :p], lifted[:p, p]
    box = cp.diag(W @ delta @ W.T) + cp.multiply(2 * q - 1, W @ u) <= q * (1 - q)
    problem = cp.Problem(
        cp.Maximize(cp.trace(delta) - cp.sum_squares(u)), [lifted >> 0, lifted[p, p] == 1, box]
    )
    problem.solve(solver=cp.CLARABEL)
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
