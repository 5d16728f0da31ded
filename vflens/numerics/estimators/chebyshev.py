"""The exact Chebyshev centre of the solutions in the box: the smallest ball around their vertices, in
batches.

With x = x₀ + W u, u in R^p, a vertex has p coordinates of x at 0 or 1 whose rows of W are independent: C(d,
p) 2^p candidates, of which those inside the box are kept. The smallest ball around points u_v solves the dual

    max over λ ≥ 0, Σλ_v = 1  of  Σ λ_v ‖u_v‖² − ‖Σ λ_v u_v‖²,          centre Σ λ_v u_v,

by an active-set method: while some point lies outside the ball of the current ones, the farthest joins them,
and λ moves towards the optimum over their affine hull. A point whose λ reaches 0 leaves (Wolfe 1976). At most
p + 1 points stay.
"""

from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np

from vflens.array import Array

#: How far outside the box a vertex may lie by rounding.
INSIDE = 1e-9

#: A point is outside a ball when its squared distance exceeds the squared radius by more.
OUTSIDE = 1e-11

#: Added to the Gram matrix of the active points, which is singular while p + 2 of them are active.
RIDGE = 1e-13

#: Maximum of changes of the active points.
CHANGES = 200

#: Numbers in one block of candidates.
CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class Ball:
    """``x`` (N, d) the centre, ``radius`` (N,) at least the Chebyshev radius, ``gap`` (N,) of the squared
    radius.

    ``found`` (N,): some vertex lies in the box. Without one ``x`` is ``x0``.
    """

    x: Array
    radius: Array
    gap: Array
    found: Array


def candidates(d: int, p: int) -> int:
    """Number of candidates for vertices."""
    return comb(d, p) << p


def chebyshev_center(W: Array, x0: Array) -> Ball:
    """The smallest ball that holds {x₀ + W u} ∩ [0, 1]^d, for ``W`` (d, p) orthonormal and ``x0`` (N, d)."""
    n, (d, p) = len(x0), W.shape
    ball = Ball(x0.copy(), np.zeros(n), np.zeros(n), np.ones(n, bool))
    if p == 0:
        return ball
    size = max(1, CHUNK // (candidates(d, p) * max(p, 4)))
    for first in range(0, n, size):
        rows = slice(first, first + size)
        u, inside = _vertices(W, x0[rows])
        found = inside.any(axis=1)
        center, squared, gap = _smallest_ball(u[found], inside[found])
        at = np.arange(n)[rows][found]
        ball.x[at], ball.radius[at], ball.gap[at] = x0[at] + center @ W.T, np.sqrt(squared), gap
        ball.found[rows] = found
    return ball


def _vertices(W: Array, x0: Array) -> tuple[Array, Array]:
    """Candidates u (N, V, p), and which of them (N, V) are in the box."""
    d, p = W.shape
    bounds = np.array(list(product((0.0, 1.0), repeat=p)))
    points, inside = [], []
    for active in map(list, combinations(range(d), p)):
        if np.linalg.cond(W[active]) > 1e10:
            continue
        u = (bounds[None] - x0[:, None, active]) @ np.linalg.inv(W[active]).T
        x = x0[:, None] + u @ W.T
        points.append(u)
        inside.append(((x >= -INSIDE) & (x <= 1 + INSIDE)).all(axis=2))
    return np.concatenate(points, axis=1), np.concatenate(inside, axis=1)


def _smallest_ball(u: Array, inside: Array) -> tuple[Array, Array, Array]:
    """Centre (N, p), squared radius (N,) and its gap (N,) of the points of ``u`` (N, V, p) that are
    ``inside``.
    """
    order = np.argsort(~inside, axis=1, kind="stable")[:, : inside.sum(axis=1).max(initial=1), None]
    u, inside = np.take_along_axis(u, order, axis=1), np.take_along_axis(inside, order[..., 0], axis=1)
    n, _, p = u.shape
    center, lower = np.zeros((n, p)), np.zeros(n)
    rows, walk = np.arange(n), _Walk(u, inside, p + 2)
    for _ in range(CHANGES):
        if not len(rows):
            break
        done, center[rows], lower[rows] = walk.advance()
        rows = rows[~done]
        walk.keep(~done)
    squared = _distances(u, inside, center).max(axis=1)
    return center, squared, np.maximum(squared - lower, 0.0)


class _Walk:
    """Active points of N rows: their places in ``u`` (N, K), used slots (N, K), weights λ (N, K)."""

    def __init__(self, u: Array, inside: Array, slots: int) -> None:
        self.u, self.inside = u, inside
        self.place = np.zeros((len(u), slots), int)  # the first point is inside
        self.taken = np.zeros((len(u), slots), bool)
        self.taken[:, 0] = True
        self.weights = self.taken.astype(np.float64)

    def advance(self) -> tuple[Array, Array, Array]:
        """Change the active points once. Return which rows are done, all centres and their dual values."""
        points = np.take_along_axis(self.u, self.place[..., None], axis=1)
        best = self._best(points)
        falling = self.taken & (best <= 0)
        ratio = np.where(falling, self.weights / np.where(falling, self.weights - best, 1.0), np.inf)
        length = np.minimum(ratio.min(axis=1), 1.0)
        self.weights += length[:, None] * (best - self.weights)
        drop = np.flatnonzero(falling.any(axis=1))
        slot = ratio[drop].argmin(axis=1)
        self.taken[drop, slot], self.weights[drop, slot] = False, 0.0
        center = np.einsum("nk,nkp->np", self.weights, points)
        lower = (self.weights * ((points - center[:, None]) ** 2).sum(axis=2)).sum(axis=1)
        distances = _distances(self.u, self.inside, center)
        full, far = ~falling.any(axis=1), distances.argmax(axis=1)
        outside = np.take_along_axis(distances, far[:, None], axis=1)[:, 0] > lower + OUTSIDE
        add = np.flatnonzero(full & outside)
        slot = self.taken[add].argmin(axis=1)
        self.place[add, slot], self.taken[add, slot], self.weights[add, slot] = far[add], True, 0.0
        return full & ~outside, center, lower

    def keep(self, stay: Array) -> None:
        """Keep these rows only."""
        self.u, self.inside, self.place = self.u[stay], self.inside[stay], self.place[stay]
        self.taken, self.weights = self.taken[stay], self.weights[stay]

    def _best(self, points: Array) -> Array:
        """The weights (N, K), of any sign, of the optimum over the affine hull of the active points."""
        n, k = self.taken.shape
        centered = points - points[:, :1]
        gram = 2 * np.einsum("nkp,nlp->nkl", centered, centered)
        system, right = np.zeros((n, k + 1, k + 1)), np.zeros((n, k + 1))
        both = self.taken[:, :, None] & self.taken[:, None, :]
        system[:, :k, :k] = np.where(both, gram, 0.0)
        diagonal = np.arange(k)
        system[:, diagonal, diagonal] += np.where(self.taken, RIDGE, 1.0)
        system[:, :k, k] = system[:, k, :k] = self.taken
        right[:, :k] = np.where(self.taken, (centered**2).sum(axis=2), 0.0)
        right[:, k] = 1.0
        best: Array = np.linalg.solve(system, right[..., None])[:, :k, 0]
        return best


def _distances(u: Array, inside: Array, center: Array) -> Array:
    """Squared distances (N, V); −∞ for points outside."""
    squared: Array = np.where(inside, ((u - center[:, None]) ** 2).sum(axis=2), -np.inf)
    return squared
