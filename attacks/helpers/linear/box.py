"""Shared by the estimators of the box [0, 1]^d: states of rows and the bound on their worst error."""

import numpy as np

from vflens.numerics.linear_system import RANGE_RTOL
from vflens.plugins.attack import linear_estimate
from vflens.types import Array, Estimate, RowStatus


def box_estimate(
    values: Array, A: Array, b: Array, *, gap: Array, radius: Array, converged: Array
) -> Estimate:
    """An estimate inside the box, with the extras "residual", "gap" and "radius" (N,).

    EMPTY_BOX marks rows that have solutions, but none in the box (to the tolerance of INCONSISTENT).
    ‖x − x̂‖ ≤ radius holds for every solution x in the box; for rows without any, ``radius`` is replaced by
    the distance of x̂ to the farthest point of the box.
    """
    estimate = linear_estimate(values, A, b)
    status, residual = estimate.status, estimate.extras["residual"]
    empty = residual > RANGE_RTOL * (np.linalg.norm(b, axis=1) + np.linalg.norm(A))
    radius = radius.copy()
    if empty.any():
        status[empty & (status == RowStatus.OK)] = RowStatus.EMPTY_BOX
        radius[empty] = box_reach(values[empty])
    status[~converged] = RowStatus.NOT_CONVERGED
    extras = {**estimate.extras, "gap": gap, "radius": radius}
    return Estimate(estimate.target, estimate.rows, values, status, extras=extras)


def box_spread(x: Array) -> Array:
    """√Σ x_i(1 − x_i) (N,) for ``x`` (N, d) in the box.

    At the solution nearest to ½·1 it is √p₂, and no solution in the box is farther away (RVG Prop. 3).
    """
    spread: Array = np.sqrt(np.maximum(x.sum(axis=1) - np.einsum("nd,nd->n", x, x), 0.0))
    return spread


def box_reach(x: Array) -> Array:
    """The distance (N,) of ``x`` (N, d) to the farthest point of the box."""
    off = x - 0.5
    np.abs(off, out=off)  # the farthest point differs by ½ + off in each coordinate
    reach: Array = np.sqrt(x.shape[1] / 4 + off.sum(axis=1) + np.einsum("nd,nd->n", off, off))
    return reach
