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
    least = np.full(t.shape[1], np.inf)
    for _ in range(CHANGES):
        outside = walk.choose()
        better = outside < least[walk.rows]
        nu[:, walk.rows[better]], least[walk.rows[better]] = walk.nu[:, better], outside[better]
        walk.keep(outside > OUTSIDE)
        if not len(walk.rows):
            break
        walk.keep(~walk.change())
    return nu


class _Walk:
    """``rows`` on their way: y and ν; at which ``side`` each coordinate is active, ±1 or 0; which one is ``moving``, −1 for none."""

    def __init__(self, Q: Array, t: Array, low: Array, high: Array) -> None:
        self.Q, self.low, self.high = Q, low, high
        self.rows, self.nu, self.y = np.arange(t.shape[1]), t.copy(), Q @ t
        self.side, self.moving, self.turn = (
            np.zeros(self.y.shape),
            np.full(t.shape[1], -1),
            np.zeros(t.shape[1]),
        )

    def choose(self) -> Array:
        """Gives every row without a moving coordinate the one farthest outside; returns how far (N,), ∞ for the other rows."""
        outside = np.maximum(self.low - self.y, self.y - self.high)
        outside[self.side != 0] = 0.0
        farthest, idle = outside.argmax(axis=0), np.flatnonzero(self.moving < 0)
        self.moving[idle] = farthest[idle]
        self.turn[idle] = np.where(self.y[farthest[idle], idle] > 0, 1.0, -1.0)
        most = np.full(len(self.moving), np.inf)
        most[idle] = outside.max(axis=0, initial=0.0)[idle]
        return most

    def change(self) -> Array:
        """Moves to the next change of the active coordinates; returns the rows that have no solution, as far as this method sees."""
        i, at, turn, side = self.moving, np.arange(len(self.moving)), self.turn, self.side
        bound = np.where(turn > 0, self.high[i, at], self.low[i, at])
        H = cholesky.gram(self.Q, (side == 0).astype(np.float64))
        g = cholesky.solve(cholesky.factor(H), self.Q[i].T)
        Qg = self.Q @ g
        part, falling = 1 - Qg[i, at], -side * turn * Qg
        with np.errstate(divide="ignore", invalid="ignore"):
            arrive = np.where(part > FIXED, np.maximum(turn * (self.y[i, at] - bound), 0) / part, np.inf)
            multiplier = np.maximum(side * (self.Q @ self.nu - self.y), 0)
            release = np.where(falling > 0, multiplier / falling, np.inf)
        first = release.argmin(axis=0)
        length = np.minimum(arrive, release[first, at])
        lost: Array = ~np.isfinite(part + length)
        length = np.where(lost, 0.0, length) * turn
        self.nu += length * np.where(lost, 0.0, g)
        move = np.where((side == 0) & ~lost, Qg, 0.0)
        move[i, at] -= 1
        self.y += length * move
        arrived = ~lost & (arrive <= release[first, at])
        self.y[i[arrived], at[arrived]] = bound[arrived]
        side[i[arrived], at[arrived]] = turn[arrived]
        self.moving[arrived] = -1
        released = ~lost & ~arrived
        side[first[released], at[released]] = 0.0
        return lost

    def keep(self, stay: Array) -> None:
        """Only these rows go on."""
        if not stay.all():
            self.low, self.high, self.nu, self.y, self.side = (
                array[:, stay] for array in (self.low, self.high, self.nu, self.y, self.side)
            )
            self.rows, self.moving, self.turn = self.rows[stay], self.moving[stay], self.turn[stay]
