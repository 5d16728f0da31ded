"""One row of :mod:`vflens.numerics.estimators.box`, for rows on which the batch fails.

If Qᵀy = t has solutions between the bounds, non-negative least squares finds the smallest. It is exact even
if the only solution is a vertex (interior points are not). If it has none, the least distance between the
bounds comes first.
"""

import numpy as np
from scipy.optimize import lsq_linear, nnls

from vflens.array import Array
from vflens.numerics.estimators.active_set import OUTSIDE

#: A slope of ½‖stretch ∘ (Qᵀy − t)‖² beyond this is no rounding: every minimiser is at that bound.
STEEP = 1e-9

#: A point that misses Qᵀy = t by at most this solves it.
FEASIBLE = 1e-9


def nearest(Q: Array, t: Array, low: Array, high: Array, stretch: Array) -> tuple[Array, Array]:
    """Primal y (d,) and dual ν (r,): the smallest y between ``low`` and ``high`` of least ‖stretch ∘ (Qᵀy −
    t)‖.

    If no y reaches Qᵀy = t, the distance is minimised first. Its slope is the same at all minimisers, so they
    share the coordinates that it drives to a bound. Then ‖y‖ is minimised over the others with Qᵀy held; ν
    are the multipliers of that.
    """
    found = _least_distance(Q, t, low, high)
    if found is None:
        y = _least_squares(Q, t, low, high, stretch)
        slope = Q @ (stretch**2 * (Q.T @ y - t))
        at_high, at_low = slope < -STEEP, slope > STEEP
        low, high = np.where(at_high, high, low), np.where(at_low, low, high)
        found = _least_distance(Q, Q.T @ y, low, high) or (y, np.zeros(len(t)))
    return found


def _least_distance(Q: Array, t: Array, low: Array, high: Array) -> tuple[Array, Array] | None:
    """The smallest y (d,) with Qᵀy = t between the bounds, and ν (r,); or None (Lawson and Hanson 1974,
    chapter 23).

    With y = Q t + W u it is the smallest u under G u ≥ h, whose multipliers are non-negative least squares;
    the bounds are widened by :data:`OUTSIDE`, or rounding would remove a single vertex.
    """
    d, r = Q.shape
    W, y = np.linalg.svd(Q)[0][:, r:], Q @ t
    h = np.concatenate([low - y, y - high]) - OUTSIDE
    E = np.vstack([np.hstack([W.T, -W.T]), h])
    try:
        z, _ = nnls(E, np.append(np.zeros(d - r), 1.0), maxiter=100 * d)
    except RuntimeError:  # did not end
        return None
    rest = 1.0 - h @ z
    if rest <= FEASIBLE:
        return None
    mu = (z[:d] - z[d:]) / rest
    y = np.clip(y + W @ (W.T @ mu), low, high)
    return (y, t - Q.T @ mu) if np.abs(Q.T @ y - t).max(initial=0.0) <= FEASIBLE else None


def _least_squares(Q: Array, t: Array, low: Array, high: Array, stretch: Array) -> Array:
    """Some y (d,) between the bounds of least ‖stretch ∘ (Qᵀy − t)‖ (Stark and Parker 1995)."""
    y: Array = lsq_linear(stretch[:, None] * Q.T, stretch * t, (low, high), method="bvls", tol=1e-15).x
    return y
