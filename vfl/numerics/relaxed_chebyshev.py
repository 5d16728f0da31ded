"""RCC1, the relaxed Chebyshev centre of the solutions in the box (RVG Prop. 2), for a whole batch.

RCC2 first. Where the certificate says that the two agree (:mod:`vfl.numerics.certificate`) nothing is left to do. With one
equation a·x = c and the certificate refuted by feature j (the largest |a_j|√v_j at the RCC2 point), RCC1 often is ½ for
all other features with the equation put on j. All else goes to the dual (:mod:`vfl.numerics.relaxed_center`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vfl.numerics.box import nearest_in_box
from vfl.numerics.certificate import certified
from vfl.numerics.linear_system import RANGE_RTOL, null_basis, residual_norm, row_basis
from vfl.numerics.relaxed_center import relaxed_center

Array: TypeAlias = npt.NDArray[Any]

#: Rows whose intermediate results are held together.
CHUNK = 2**14

#: A larger gap sends a row from the batch to a conic solver, and after it marks the row as not converged.
ACCEPT = 1e-5


@dataclass(frozen=True, eq=False)
class Relaxed:
    """``x`` (N, d), ``value`` (N,) ≥ p₁ ≥ the squared Chebyshev radius, ``gap`` (N,) ≥ value − p₁, ``certified`` and ``converged`` (N,).

    ``certified``: RCC1 = RCC2. Rows without a solution in the box have the RCC2 answer and value 0.
    """

    x: Array
    value: Array
    gap: Array
    certified: Array
    converged: Array


def relaxed_chebyshev(A: Array, b: Array) -> Relaxed:
    """RCC1 of every row of ``b`` (N, m), for ``A`` (m, d). Beyond the result, memory does not grow with N."""
    Q, W, n = row_basis(A), null_basis(A), len(b)
    result = Relaxed(
        np.empty((n, A.shape[1])), np.zeros(n), np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
    )
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
    return result


def _relax(Q: Array, W: Array, part: Relaxed, rows: Array) -> None:
    """RCC1 in place of RCC2 in ``rows``."""
    v = np.maximum(part.x[rows] * (1 - part.x[rows]), 0.0)
    part.value[rows] = v.sum(axis=1)
    part.certified[rows] = certified(Q, W, v)
    rows, v = rows[~part.certified[rows]], v[~part.certified[rows]]
    if Q.shape[1] == 1:
        rows = rows[~_dominated(Q[:, 0], part, rows, v)]
    found = relaxed_center(W, part.x[rows])
    found.value[:] = np.minimum(found.value, part.value[rows])
    fits = found.gap <= ACCEPT
    done, left = rows[fits], rows[~fits]
    part.x[done], part.value[done], part.gap[done] = found.x[fits], found.value[fits], found.gap[fits]
    for row in left:
        from vfl.numerics import relaxed_center_program  # slow to import, seldom needed

        x, value, gap = relaxed_center_program.relaxed_center(W, part.x[row])
        part.converged[row] = gap <= ACCEPT
        part.x[row], part.value[row], part.gap[row] = x, min(value + gap, part.value[row]), gap


def _dominated(a: Array, part: Relaxed, rows: Array, v: Array) -> Array:
    """Which of ``rows`` have the whole equation on one feature, the others at ½; written into ``part``.

    RCC1 with one equation a·x = c maximises Σ_{i≠j} v_i + min(v_j, S²/a_j²), S = Σ_{i≠j} |a_i|√v_i. All v_i = ¼ is best if
    x_j then lies in [0, 1] and the minimum is its second term.
    """
    size = np.abs(a)
    j = np.argmax(size * np.sqrt(v), axis=1)
    c = part.x[rows] @ a
    xj = (c - (a.sum() - a[j]) / 2) / a[j]
    second = ((size.sum() - size[j]) / 2 / size[j]) ** 2
    yes: Array = (xj >= 0) & (xj <= 1) & (xj * (1 - xj) >= second)
    hit = rows[yes]
    part.x[hit] = 0.5
    part.x[hit, j[yes]] = xj[yes]
    part.value[hit] = (len(a) - 1) / 4 + second[yes]
    part.gap[hit] = 0.0
    return yes
