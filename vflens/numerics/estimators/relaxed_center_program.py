"""RCC1 of one row as a semidefinite program, solved by Clarabel: for rows on which the batch fails."""

import clarabel
import numpy as np
from scipy.sparse import csc_array

from vflens.array import Array


def relaxed_center(W: Array, x0: Array) -> tuple[Array, float, float]:
    """The centre x (d,), an upper bound on p₁ and the duality gap, infinite if the solver failed.

    Minimises ‖u‖² − Tr Δ over Y = [[Δ, u], [uᵀ, 1]] ⪰ 0.

    Δ stands for u uᵀ + S (RVG Prop. 2): each feature has w_iᵀΔ w_i + 2 q_i w_iᵀu + q_i² ≤ q_i + w_iᵀu, x = q
    + W u.
    """
    d, p = W.shape
    i, j = _upper(p + 1)
    inner, last = (j < p), (i < p) & (j == p)
    size = len(i) - 1  # all of Y but its corner: Δ and u
    scale = np.where(i == j, 1.0, np.sqrt(2.0))  # Clarabel's triangles
    quadratic, linear = np.zeros(size), np.zeros(len(i))
    quadratic[last[:-1]] = 2.0
    linear[inner & (i == j)] = -1.0
    rows = np.zeros((d, len(i)))
    rows[:, inner] = W[:, i[inner]] * W[:, j[inner]] * np.where(i == j, 1.0, 2.0)[inner]
    rows[:, last] = (2 * x0 - 1)[:, None] * W
    semidefinite = -np.diag(scale)[:, :size]
    right = np.concatenate([x0 * (1 - x0), np.zeros(size), [1.0]])
    constraints = csc_array(np.vstack([rows[:, :size], semidefinite]))
    cones = [clarabel.NonnegativeConeT(d), clarabel.PSDTriangleConeT(p + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        csc_array(np.diag(quadratic)), linear[:size], constraints, right, cones, settings
    )
    solution = solver.solve()
    x = x0 + W @ np.asarray(solution.x)[last[:-1]]
    bounds = -solution.obj_val, -solution.obj_val_dual
    solved = str(solution.status) in ("Solved", "AlmostSolved")
    return np.clip(x, 0, 1), max(bounds), max(bounds) - min(bounds) if solved else np.inf


def _upper(n: int) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle, column by column."""
    j, i = np.tril_indices(n)
    return i, j
