"""The smallest y with Qᵀy = t, low ≤ y ≤ high by the dual active-set method (Goldfarb and Idnani 1983), a batch at once.

Among the y with Qᵀy = t and some coordinates, the active ones, held at their bounds the smallest is y = Qν on the others, and λ = y − Qν
are the multipliers. The coordinate i farthest outside is driven towards its bound: with H = Σ q_j q_jᵀ over the coordinates that are not
active and g = H⁻¹q_i, a multiplier τ of i moves ν by ±τg and y by ∓τ(e_i − Q g). Either i arrives and becomes active, or a multiplier of
another one reaches 0 before and that one is released. The rows q_j of the others always span all of R^r: H is invertible also at vertices.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vfl.numerics import cholesky

Array: TypeAlias = npt.NDArray[Any]

#: A coordinate this little outside counts as inside.
OUTSIDE = 1e-12

#: An |e_i − Q g|² up to this says that i cannot move without the active ones.
FIXED = 1e-9

#: The most changes of the active coordinates.
CHANGES = 60


def smallest(Q: Array, t: Array, low: Array, high: Array) -> Array:
    """ν (r, N) with y = clip(Q ν, low, high) where there is one; ``low`` < 0 < ``high`` are (d, N). Check Qᵀy = t."""
    walk, nu = _Walk(Q, t, low, high), t.copy()
    for _ in range(CHANGES):
        walk.keep(~walk.choose())
        if not len(walk.rows):
            break
        lost = walk.change()
        nu[:, walk.rows] = walk.nu
        walk.keep(~lost)
    return nu


class _Walk:
    """``rows`` on their way: y and ν, which coordinates are ``free``, not active, and the one that is ``moving``, −1 for none."""

    def __init__(self, Q: Array, t: Array, low: Array, high: Array) -> None:
        self.Q, self.low, self.high = Q, low, high
        self.rows, self.nu, self.y = np.arange(t.shape[1]), t.copy(), Q @ t
        self.free, self.moving = np.ones(self.y.shape, bool), np.full(t.shape[1], -1)

    def choose(self) -> Array:
        """Gives every row without a moving coordinate the one farthest outside; returns the rows where none is."""
        outside = np.maximum(self.low - self.y, self.y - self.high)
        outside[~self.free] = 0.0
        farthest = outside.argmax(axis=0)
        idle = self.moving < 0
        self.moving[idle] = farthest[idle]
        over: Array = idle & (outside.max(axis=0, initial=0.0) <= OUTSIDE)
        return over

    def change(self) -> Array:
        """Moves to the next change of the active coordinates; returns the rows that have no solution, as far as this method sees."""
        i, at = self.moving, np.arange(len(self.moving))
        above = self.y[i, at] > self.high[i, at]
        bound = np.where(above, self.high[i, at], self.low[i, at])
        g = self._solve(self.Q[i].T)
        turn, Qg = np.where(above, 1.0, -1.0), self.Q @ g
        part = 1 - Qg[i, at]
        lost: Array = ~np.isfinite(part)
        with np.errstate(divide="ignore", invalid="ignore"):
            arrive = np.where(part > FIXED, turn * (self.y[i, at] - bound) / part, np.inf)
            multiplier, change = self.y - self.Q @ self.nu, -turn * Qg
            falls = ~self.free & (multiplier * change < 0)
            release = np.where(falls, -multiplier / change, np.inf)
        first = release.argmin(axis=0)
        length = np.minimum(arrive, release[first, at])
        lost = lost | ~np.isfinite(length)
        length = np.where(lost, 0.0, length) * turn
        self.nu += length * np.where(lost, 0.0, g)
        move = np.where(self.free, np.where(lost, 0.0, Qg), 0.0)
        move[i, at] -= 1
        self.y += length * move
        arrived = ~lost & (arrive <= release[first, at])
        self.y[i[arrived], at[arrived]] = bound[arrived]
        self.free[i[arrived], at[arrived]] = False
        self.moving[arrived] = -1
        released = ~lost & ~arrived
        self.free[first[released], at[released]] = True
        return lost

    def _solve(self, q: Array) -> Array:
        """H⁻¹ q for ``q`` (r, N)."""
        r = len(q)
        i, j = np.tril_indices(r)
        H = np.empty((r, r, q.shape[1]))
        H[i, j] = (self.Q[:, i] * self.Q[:, j]).T @ self.free.astype(np.float64)
        solution: Array = cholesky.solve(cholesky.factor(H), q)
        return solution

    def keep(self, stay: Array) -> None:
        """Only these rows go on."""
        if not stay.all():
            self.low, self.high, self.nu, self.y, self.free = (
                array[:, stay] for array in (self.low, self.high, self.nu, self.y, self.free)
            )
            self.rows, self.moving = self.rows[stay], self.moving[stay]
