"""The exact solution of the SVM (2) from the sets of rows outside, on and inside the margin."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve

from vflens.table_noise._problem import Problem
from vflens.types import Array

MAX_CHANGES = 20
#: A row changes sets if it is wrong by more than this, relative to the terms; less is rounding.
ROUNDING = 1e-12
#: Singular values of the rows on the margin up to this share of the largest count as 0: duplicates.
RANK_RTOL = 1e-10
#: Hw − Aᵀω over the size of its terms; rounding of columns of 1e12 can exceed it.
STATIONARY = 1e-5


@dataclass(frozen=True, eq=False)
class Sets:
    """Rows ``on`` the margin (a_iᵀw = 1, 0 ≤ ω ≤ θ) and ``inside`` (ω = θ + ρξ); the others are outside."""

    on: Array
    inside: Array

    @classmethod
    def near(cls, problem: Problem, w: Array, omega: Array) -> Self:
        """The sets nearest to an interior point (w, ω)."""
        gap, share = 1 - problem.A @ w, omega / problem.theta
        inside = gap > abs(1 + problem.rho / problem.theta * gap - share)
        return cls((share > -gap) & ~inside, inside)

    def corrected(self, problem: Problem, w: Array, omega: Array) -> "Sets":
        """The sets after the optimum on these has moved rows."""
        gap, theta = 1 - problem.A @ w, problem.theta
        reach = ROUNDING * (abs(problem.A) @ abs(w) + 1)
        short, beyond = gap > reach, gap < -reach  # rows on the margin move too: w cannot meet all of them
        too_much, negative = omega > theta * (1 + ROUNDING), omega < -theta * ROUNDING
        met = (self.inside & beyond) | (~self.inside & ~self.on & short)
        inside = (self.inside & ~beyond) | (self.on & (too_much | short))
        return Sets((self.on & ~too_much & ~negative & ~short & ~beyond) | met, inside)

    def same(self, other: "Sets") -> bool:
        """Whether the sets are equal."""
        return np.array_equal(self.on, other.on) and np.array_equal(self.inside, other.inside)


def optimum_near(problem: Problem, w: Array, omega: Array) -> tuple[Array, Array] | None:
    """(w, ω), exact to rounding, from an interior point's; None if the sets do not settle."""
    sets = Sets.near(problem, w, omega)
    for _ in range(MAX_CHANGES):
        with np.errstate(all="ignore"):  # columns of too different sizes: the next line notices
            w, omega = _optimum(problem, sets, np.clip(omega, 0, problem.theta))
        if not np.isfinite(w).all():
            return None
        corrected = sets.corrected(problem, w, omega)
        if corrected.same(sets):
            omega = np.where(sets.on, np.clip(omega, 0, problem.theta), omega)
            return (w, omega) if _stationary(problem, w, omega) else None
        sets = corrected
    return None


def _stationary(problem: Problem, w: Array, omega: Array) -> bool:
    terms = abs(problem.H) @ abs(w) + abs(problem.A).T @ omega
    return bool((abs(problem.H @ w - problem.A.T @ omega) <= STATIONARY * terms).all())


def _optimum(problem: Problem, sets: Sets, omega: Array) -> tuple[Array, Array]:
    """Min ½wᵀHw + Σ_inside(θξ + ρξ²/2) s.t. a_iᵀw = 1 on the margin, and its multipliers.

    w = w₀ + N u, N a basis of the directions that the rows on the margin leave free. If their ω are not
    unique (duplicate rows), they are the nearest to ``omega``.
    """
    theta, rho, H = problem.theta, problem.rho, problem.H
    on, inside = problem.A[sets.on], problem.A[sets.inside]
    U, singular, Vt = np.linalg.svd(on, full_matrices=len(on) < on.shape[1])
    rank = int((singular > RANK_RTOL * singular.max(initial=0.0)).sum())
    U, singular, R, N = U[:, :rank], singular[:rank], Vt[:rank].T, Vt[rank:].T
    # H + ρ Σ aaᵀ by its triangular root: the product itself would lose columns far from 0
    free = np.linalg.qr(np.vstack([problem.root @ N, np.sqrt(rho) * (inside @ N)]), mode="r")
    w, multipliers = np.zeros(len(H)), omega[sets.on]
    for _ in range(3):  # once, and twice more on the rest of rounding
        w = w + R @ ((U.T @ (1 - on @ w)) / singular)
        if N.size:
            pull = inside.T @ (theta + rho * (1 - inside @ w)) - H @ w
            w = w + N @ cho_solve((free, False), N.T @ pull, check_finite=False)
        pull = inside.T @ (theta + rho * (1 - inside @ w)) - H @ w
        multipliers = multipliers - U @ ((R.T @ (pull + on.T @ multipliers)) / singular)
    result = np.zeros(len(problem.A))
    result[sets.on] = multipliers
    result[sets.inside] = theta + rho * (1 - inside @ w)
    return w, result
