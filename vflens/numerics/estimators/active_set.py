"""The smallest y with Qᵀy = t, low ≤ y ≤ high, by the dual active-set method (Goldfarb and Idnani 1983), in
batches.

Hold some coordinates, the active ones, at their bounds. The smallest y with Qᵀy = t is then y = Qν − μ, with
multipliers μ that are 0 elsewhere. The coordinate i farthest outside moves towards its bound: a multiplier τ
of i moves y by −τm, m the projection of e_i on {Qᵀm = 0, m_H = 0}, and μ_H by −τ(W_H W_Hᵀ)⁻¹W_H w_i
(:mod:`vflens.numerics.estimators.held`). Either i arrives and becomes active, or another multiplier reaches 0
first and that coordinate becomes free. The rows w_j of the active coordinates stay independent.
"""

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators import cholesky, held

#: A coordinate outside by at most this counts as inside.
OUTSIDE = 1e-12

#: With an |m|² up to this, i cannot move without the active ones.
FIXED = 1e-9

#: Maximum of changes of the active coordinates.
CHANGES = 60


def smallest(Q: Array, products: Array, t: Array, low: Array, high: Array) -> Array:
    """ν (r, N) with y = clip(Q ν, low, high), if one exists; ``low`` < 0 < ``high`` are (d, N). Check Qᵀy =
    t.

    The method fails only if a coordinate must move whose |m|² is at most :data:`FIXED`. It may also lose a
    unique y to the last bits of ``t``, if 1/|m| lifts them above :data:`OUTSIDE`. ``products``:
    :func:`vflens.numerics.estimators.held.products` of a basis of null Qᵀ.
    """
    walk, nu = _Walk(Q, products, t, low, high), np.empty_like(t)
    lost = np.zeros(t.shape[1], bool)
    for _ in range(CHANGES):
        stay = (walk.choose() > OUTSIDE) & ~lost
        if not stay.all():
            nu[:, walk.rows[~stay]] = walk.nu()[:, ~stay]
            walk.keep(stay)
        if not len(walk.rows):
            break
        lost = walk.change()
    nu[:, walk.rows] = walk.nu()
    return nu


class _Walk:
    """State of ``rows``: y; active coordinates in slots ``at``; the ``side`` of each, ±1, or 0 in an empty
    slot; |μ|.

    ``moving`` is the coordinate that moves to its bound, −1 for none; ``turn`` its direction, ``push`` its
    multiplier.
    """

    def __init__(self, Q: Array, products: Array, t: Array, low: Array, high: Array) -> None:
        self.Q, self.products, self.low, self.high, n = Q, products, low, high, t.shape[1]
        self.rows, self.t, self.y = np.arange(n), t, Q @ t
        self.at, self.side, self.mu = np.full((1, n), len(Q)), np.zeros((1, n)), np.zeros((1, n))
        self.moving, self.turn, self.push = np.full(n, -1), np.zeros(n), np.zeros(n)

    def nu(self) -> Array:
        """ν (r, N) of y and the multipliers."""
        mu, at = np.zeros((len(self.Q) + 1, len(self.rows))), np.arange(len(self.rows))
        mu[self.at, at] = self.side * self.mu
        mu[self.moving, at] += self.turn * self.push
        nu: Array = self.t + self.Q.T @ mu[:-1]
        return nu

    def choose(self) -> Array:
        """Choose the moving coordinate farthest outside for rows without one; its distance (N,), else ∞."""
        outside = np.maximum(self.low - self.y, self.y - self.high)
        farthest, at, idle = outside.argmax(axis=0), np.arange(len(self.moving)), self.moving < 0
        self.moving = np.where(idle, farthest, self.moving)
        self.turn = np.where(idle, np.sign(self.y[farthest, at]), self.turn)
        most: Array = np.where(idle, outside[farthest, at], np.inf)
        return most

    def change(self) -> Array:
        """Move to the next change of active coordinates; the rows for which the method finds no solution."""
        i, at, turn = self.moving, np.arange(len(self.moving)), self.turn
        bound = np.where(turn > 0, self.high[i, at], self.low[i, at])
        move, falling = self._direction()
        part = move[i, at]
        with np.errstate(divide="ignore", invalid="ignore"):
            arrive = np.where(part > FIXED, np.maximum(turn * (self.y[i, at] - bound), 0) / part, np.inf)
            release = np.where(falling > 0, self.mu / falling, np.inf)
        first = release.argmin(axis=0)
        soonest = release[first, at]
        length = np.minimum(arrive, soonest)
        lost = ~np.isfinite(length)
        length[lost], move[:, lost], falling[:, lost] = 0.0, 0.0, 0.0
        self.y -= length * turn * move
        self.mu -= length * falling
        self.push += length
        self._arrive(np.flatnonzero(~lost & (arrive <= soonest)), bound)
        released = np.flatnonzero(arrive > soonest)
        slot = first[released]
        self.at[slot, released], self.side[slot, released], self.mu[slot, released] = len(self.Q), 0.0, 0.0
        return np.asarray(lost)

    def _arrive(self, rows: Array, bound: Array) -> None:
        """Make the moving coordinates of ``rows`` active, in their first empty slots."""
        if (self.side[:, rows] != 0).all(axis=0).any():
            self.at = np.pad(self.at, ((0, 1), (0, 0)), constant_values=len(self.Q))
            self.side, self.mu = (np.pad(slots, ((0, 1), (0, 0))) for slots in (self.side, self.mu))
        slot, i = (self.side[:, rows] == 0).argmax(axis=0), self.moving[rows]
        self.at[slot, rows], self.side[slot, rows], self.mu[slot, rows] = i, self.turn[rows], self.push[rows]
        self.y[i, rows], self.moving[rows], self.push[rows] = bound[rows], -1, 0.0

    def _direction(self) -> tuple[Array, Array]:
        """Projections m (d, N) of the moving coordinates, and the rates at which the |μ| (a, N) fall."""
        (d, r), i, at = self.Q.shape, self.moving, np.arange(len(self.moving))
        if len(self.at) < r:
            pull = held.pulls(self.products, self.at, self.products[self.at, i])
            all_pulls = np.zeros((d + 1, len(at)))
            all_pulls[self.at, at] = pull
            move = self.products[:d, i] - self.products[:d] @ all_pulls
        else:
            free = np.ones((d + 1, len(at)))
            free[self.at, at] = 0.0
            g = cholesky.solve(cholesky.factor(cholesky.gram(self.Q, free[:d])), self.Q[i].T)
            move = np.zeros((d + 1, len(at)))
            move[:d] = -self.Q @ g
            pull, move = move[self.at, at], move[:d] * free[:d]
            move[i, at] += 1
        return move, self.side * self.turn * pull

    def keep(self, stay: Array) -> None:
        """Keep these rows only."""
        rows = np.flatnonzero(stay)
        for name in ("rows", "t", "low", "high", "y", "at", "side", "mu", "moving", "turn", "push"):
            setattr(self, name, getattr(self, name).take(rows, axis=-1))
