"""RCC1, the relaxed Chebyshev centre of the solutions in the box (RVG Prop. 2), for a whole batch.

It computes RCC2 first. Rows with a proof that the two agree
(:mod:`vflens.numerics.estimators.proof`) keep it. One equation has a closed form but for two scalars
(:mod:`vflens.numerics.estimators.one_equation`). An interior-point method solves the others
(:mod:`vflens.numerics.estimators.relaxed_center`).
"""

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators import one_equation
from vflens.numerics.estimators.box import nearest_in_box
from vflens.numerics.estimators.proof import proved
from vflens.numerics.estimators.relaxed_center import Center, relaxed_center
from vflens.numerics.linear_system import RANGE_RTOL, null_basis, residual_norm, row_basis

#: Rows in one block.
CHUNK = 2**14

#: A row with a larger gap goes to a conic solver; if the gap stays larger, the row is not converged.
ACCEPT, CONVERGED = 1e-7, 1e-5

#: RCC2's point is the answer if p₂ is at most this: ‖x₁ − x₂‖² ≤ p₁ ≤ p₂.
POINT = 1e-10


@dataclass(frozen=True, eq=False)
class Relaxed:
    """``x`` (N, d), ``value`` (N,) ≥ p₁ ≥ the squared Chebyshev radius, ``gap`` (N,) ≥ value − p₁,
    ``certified`` and ``converged`` (N,).

    No solution in the box is farther from ``x`` than ``radius`` (N,). ``certified``: RCC1 = RCC2. Rows
    without a solution in the box have the RCC2 answer, value and radius 0.
    """

    x: Array
    value: Array
    radius: Array
    gap: Array
    certified: Array
    converged: Array


def relaxed_chebyshev(A: Array, b: Array) -> Relaxed:
    """RCC1 of every row of ``b`` (N, m), for ``A`` (m, d). Beyond the result, memory does not grow with N."""
    Q, W, n = row_basis(A), null_basis(A), len(b)
    numbers, flags = (np.zeros(n) for _ in range(3)), (np.zeros(n, bool) for _ in range(2))
    result = Relaxed(np.empty((n, A.shape[1])), *numbers, *flags)
    for first in range(0, n, CHUNK):
        rows = slice(first, first + CHUNK)
        nearest = nearest_in_box(A, b[rows], np.full(A.shape[1], 0.5))
        solved = residual_norm(A, b[rows], nearest.x) <= RANGE_RTOL * (
            np.linalg.norm(b[rows], axis=1) + np.linalg.norm(A)
        )
        part = Relaxed(*(getattr(result, name)[rows] for name in result.__dataclass_fields__))
        part.x[:], part.gap[:], part.converged[:] = nearest.x, nearest.gap, nearest.converged
        if W.shape[1]:
            _relax(Q, W, part, np.flatnonzero(solved & nearest.converged))
            np.maximum(part.radius, np.sqrt(part.value), out=part.radius)
    return result


def _relax(Q: Array, W: Array, part: Relaxed, rows: Array) -> None:
    """Replace RCC2 by RCC1 in ``rows``; the conic solver solves the rows that the other methods leave."""
    v = np.maximum(part.x[rows] * (1 - part.x[rows]), 0.0)
    part.value[rows] = v.sum(axis=1)
    part.certified[rows] = proved(Q, W, v)
    rows = rows[~part.certified[rows]]
    part.gap[rows] = part.value[rows]
    rows = rows[part.gap[rows] > POINT]
    if Q.shape[1] == 1:
        rows = _accept(part, rows, one_equation.relaxed_center(Q[:, 0], part.x[rows]))
    rows = _accept(part, rows, relaxed_center(W, part.x[rows]))
    for row in rows:
        from vflens.numerics.estimators import relaxed_center_program

        x, value, gap = relaxed_center_program.relaxed_center(W, part.x[row])
        if gap < part.gap[row]:
            part.x[row], part.value[row], part.gap[row] = x, max(value, 0.0), gap
            part.radius[row] = np.sqrt(part.value[row]) + np.sqrt(gap)
        part.converged[row] = part.gap[row] <= CONVERGED


def _accept(part: Relaxed, rows: Array, found: Center) -> Array:
    """Write the answers with a small gap into ``part``; return the other rows."""
    fits = found.gap <= ACCEPT
    done = rows[fits]
    part.x[done], part.value[done], part.gap[done] = found.x[fits], found.value[fits], found.gap[fits]
    return rows[~fits]
