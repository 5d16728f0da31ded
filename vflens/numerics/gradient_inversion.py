"""Gradient inversion of logistic regression: projected Adam over the box, for a whole batch (RVG §VIII).

Two objectives of x in A x = b', both least where the equations hold:

    ‖A x − b'‖²  =  Σ_m (ln(ĉ_{m+1}/ĉ_m) − ln(c_{m+1}/c_m))²,       KL(ĉ‖c) = Σ_i ĉ_i ln(ĉ_i/c_i).

The first needs A and b' only. The second needs the scores c too: with δ = (0, cumsum(A x − b')),
ln ĉ = ln c + δ − ln Σ_j c_j exp δ_j. It is not convex in x, and flat where ĉ saturates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.optimizer import Adam

#: Rows in one block: small enough for the caches.
CHUNK = 1024


@dataclass(frozen=True, eq=False)
class InvertedRows:
    """``x`` (N, d) in the box, its ``objective`` (N,), and ``gap`` (N,), the largest decrease that the slope
    allows.

    ``gap`` is 0 exactly at stationary points. For the squares it bounds the distance of the objective from
    its minimum. ``size`` is the largest objective in the box, up to a factor: compare a gap with it.
    """

    x: Array
    objective: Array
    gap: Array
    size: float


def invert(
    A: Array, b: Array, log_c: Array | None, start: Array, *, steps: int, learning_rate: float
) -> InvertedRows:
    """Adam from ``start`` (d,) or (N, d), clipped into the box after each step. The last third of the steps
    has a tenth of the rate.

    Minimises KL(ĉ‖c) if ``log_c`` (N, m + 1), finite, is given, else ‖A x − b‖².
    """
    x = np.broadcast_to(start, (len(b), A.shape[1])).copy()
    objective, gap, size = np.empty(len(b)), np.empty(len(b)), _size(A, log_c is not None)
    for first in range(0, len(b), CHUNK):
        rows = slice(first, first + CHUNK)
        problem = _Problem(A, b[rows].T.copy(), None if log_c is None else log_c[rows].T.copy(), size)
        point = x[rows].T.copy()
        _descend(problem, point, steps - steps // 3, learning_rate)
        _descend(problem, point, steps // 3, learning_rate / 10)
        objective[rows], slope = problem.value_and_slope(point)
        gap[rows] = np.maximum(slope * point, slope * (point - 1)).sum(axis=0)
        x[rows] = point.T
    return InvertedRows(x, objective, gap, size)


def _size(A: Array, scores: bool) -> float:
    """‖A‖² for the squares, at most ‖A‖ for KL: it grows linearly in large log-ratios."""
    norm = float(np.linalg.norm(A)) or 1.0
    return min(norm, norm**2) if scores else norm**2


def _descend(problem: _Problem, x: Array, steps: int, learning_rate: float) -> None:
    """``steps`` of Adam on ``x`` (d, N), in place."""
    theta, adam = x.reshape(-1), Adam(x.size, learning_rate)
    for _ in range(steps):
        slope = problem.value_and_slope(x)[1].reshape(-1)
        slope /= problem.size  # keeps Adam's ε small beside a faint A
        adam.update(theta, slope)
        np.clip(theta, 0.0, 1.0, out=theta)


@dataclass(frozen=True, eq=False)
class _Problem:
    """N rows, batch last: ``b`` (m, N), ``log_c`` (m + 1, N) or None; ``size`` of :class:`InvertedRows`."""

    A: Array
    b: Array
    log_c: Array | None
    size: float = 1.0

    def value_and_slope(self, x: Array) -> tuple[Array, Array]:
        """The objective (N,) and its gradient in ``x`` (d, N)."""
        miss = self.A @ x - self.b
        if self.log_c is None:
            return (miss * miss).sum(axis=0), 2 * self.A.T @ miss
        value, slope = _kl(self.log_c, miss)
        return value, self.A.T @ slope


def _kl(log_c: Array, miss: Array) -> tuple[Array, Array]:
    """KL(ĉ‖c) (N,) and its gradient in ``miss`` = A x − b' (m, N)."""
    ratio = np.zeros_like(log_c)
    np.cumsum(miss, axis=0, out=ratio[1:])
    estimate = log_c + ratio
    top = estimate.max(axis=0)
    estimate = np.exp(estimate - top)
    total = estimate.sum(axis=0)
    estimate /= total
    ratio -= top + np.log(total)  # now ln(ĉ/c)
    value = (estimate * ratio).sum(axis=0)
    in_logits = estimate * (ratio - value)
    slope: Array = in_logits[1:][::-1].cumsum(axis=0)[::-1]
    return value, slope
