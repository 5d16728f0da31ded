"""One row of :mod:`vfl.numerics.box` as two quadratic programs, for the rare row on which the batch fails."""

from __future__ import annotations

from typing import Any, TypeAlias

import clarabel
import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, diags_array

Array: TypeAlias = npt.NDArray[Any]


#: A slope of ½‖stretch ∘ (Qᵀy − t)‖² beyond this is no rounding: every minimiser stands at that bound.
STEEP = 1e-9

#: Clarabel found a solution of Qᵀy = t if it misses it by no more.
FEASIBLE = 1e-9


def nearest(Q: Array, t: Array, low: Array, high: Array, stretch: Array) -> tuple[Array, Array]:
    """Y (d,) and ν (r,): the smallest y among those between ``low`` and ``high`` of least ‖stretch ∘ (Qᵀy − t)‖.

    If none reaches Qᵀy = t, the distance is minimised first, over y and e = Qᵀy − t. Its slope is the same at
    all minimisers, which therefore share the coordinates that it drives to a bound. Among the others ‖y‖ is
    minimised with Qᵀy held; ν are the multipliers of that.
    """
    d, r = Q.shape
    y, z = _solved(np.ones(d), Q.T, t, low, high)
    if np.abs(Q.T @ np.clip(y, low, high) - t).max() > FEASIBLE:
        equations, free = np.hstack([Q.T, -np.eye(r)]), np.full(r, 1e20)  # Clarabel's infinity
        weights = np.concatenate([np.zeros(d), stretch**2])
        y, _ = _solved(weights, equations, t, np.append(low, -free), np.append(high, free))
        y = np.clip(y[:d], low, high)
        slope = Q @ (stretch**2 * (Q.T @ y - t))
        low, high = np.where(slope < -STEEP, high, low), np.where(slope > STEEP, low, high)
        y, z = _solved(np.ones(d), Q.T, Q.T @ np.clip(y, low, high), low, high)
    return np.clip(y, low, high), -z


def _solved(weights: Array, equations: Array, right: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Min ½ Σ weights y² with equations y = right, low ≤ y ≤ high: y and the multipliers of the equations."""
    n, m = len(weights), len(equations)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    constraints = csc_array(np.vstack([equations, np.eye(n), -np.eye(n)]))
    bounds = np.concatenate([right, high, -low])
    cones = [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(2 * n)]
    quadratic = csc_array(diags_array(weights))
    solution = clarabel.DefaultSolver(quadratic, np.zeros(n), constraints, bounds, cones, settings).solve()
    return np.asarray(solution.x), np.asarray(solution.z)[:m]
