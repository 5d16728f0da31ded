"""The point of the box that solves A x = b and is nearest to a given one, for a whole batch (RVG Remark 2).

With Q (d, r) an orthonormal basis of the rows of A, A x = b reads Qᵀx = c. The projection of s on
{Qᵀx = c} ∩ [0, 1]^d is x = clip(s + Q ν, 0, 1), where ν maximises the concave, piecewise quadratic dual

    θ(ν) = νᵀ(c − Qᵀx) + ½‖x − s‖²,    ∇θ = c − Qᵀx,    −∇²θ = Qᵀ diag(x strictly inside the box) Q.

1. Newton from s + Q Qᵀ(c − Qᵀs), the nearest solution without the box. In general position it ends exactly
   after two or three steps. Where fewer than r coordinates are inside (a vertex) the matrix is singular.
   Few coordinates leave the box: the step solves for those (:mod:`vflens.numerics.estimators.held`).
2. The remaining rows: the dual active-set method (:mod:`vflens.numerics.estimators.active_set`), exact at
   vertices too.
3. The rows that it did not solve, mostly without a solution in the box: proximal point steps on the dual,
   ν ← argmax θ(·) − ε/2 ‖· − ν‖²_D, each by damped Newton on an invertible matrix. This is the augmented
   Lagrangian method; with D = S⁻² (S the singular values of A) the distance ‖·‖_D is that of the multipliers
   of A x = b. If no point of the box solves the equations, it converges to the answer for the nearest
   solvable b (Chiche and Gilbert 2016): to the point nearest to s among those of least ‖A x − b‖.
4. Rows that still fail the optimality conditions, or for which these do not decide whether the box holds a
   solution: one by one (:mod:`vflens.numerics.estimators.box_program`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators import active_set, cholesky, held
from vflens.numerics.linear_system import RANK_RTOL

#: Rows in one block: small enough for the caches, large enough to hide the calls.
CHUNK = 2048

#: Optimality conditions hold when they fail by no more than this (Qᵀx = c, and stationarity of ‖A x − b‖).
TOLERANCE = 1e-11

#: Distance of A x from b, A's largest singular value scaled to 1, that counts as a solution in the box
#: without proof.
NEAR = 1e-7

#: Entries of Q up to this are rounding: a column that A does not touch must not move with a large ν.
NOTHING = 1e-13

#: A pivot of Newton's matrix, whose entries are at most 1, up to this counts as 0.
SINGULAR = 1e-12

#: ε of the proximal steps in either metric, the most of them, and the most Newton steps inside one.
PROXIMAL = (1e-5, 24), (1e-4, 12)
NEWTON_STEPS = 12


@dataclass(frozen=True, eq=False)
class Nearest:
    """``x`` (N, d) in the box, ``gap`` (N,), and ``converged`` (N,): the optimality conditions hold.

    ``gap`` bounds the distance of ½‖x − s‖² from its optimum, by the dual. If the box holds no solution it
    bounds that of ½‖A x − b‖², with A's largest singular value scaled to 1.
    """

    x: Array
    gap: Array
    converged: Array


def nearest_in_box(A: Array, b: Array, center: Array) -> Nearest:
    """The point of [0, 1]^d nearest to ``center`` (d,) or (N, d) among those of least ‖A x − b‖.

    If the box holds solutions of A x = b, the answer is the nearest of them. If it holds none, the answer
    depends on the basis of the equations. ``center`` lies in the box. Beyond the result, memory does not grow
    with N.

    Let the box hold solutions, x* be the nearest of them, σ₁ ≥ … ≥ σ_r the singular values of A, and W an
    orthonormal basis of its null space. The accuracy of a converged row x̂, up to rounding of A x̂ and b, is:

    - ‖A x̂ − b‖ ≤ :data:`NEAR` σ₁;
    - ‖x̂ − x*‖ ≤ Λ ‖A x̂ − b‖ / σ_r with Λ² = 1 + 1/σ², σ the least singular value of any independent rows
      W_H of W. Reason: x̂ is nearest to s among the points with its own t = Qᵀ(x̂ − s). With the coordinates
      H at their bounds such a point moves with t by Q − W W_H⁺ Q_H. A coordinate that the equations nearly
      determine has a small row w_i of W. It multiplies an error of b by 1/‖w_i‖, which no method avoids, and
      by no more.
    """
    U, S, Vt = np.linalg.svd(A)
    r = int((RANK_RTOL * S.max(initial=0.0) < S).sum())
    V = np.where(np.abs(Vt.T) > NOTHING, Vt.T, 0.0)
    Q, products = V[:, :r], held.products(V[:, r:])
    inverse, stretch = U[:, :r] / S[:r], S[:r] / S.max(initial=0.0)
    x, gap, converged = np.empty((len(b), A.shape[1])), np.empty(len(b)), np.empty(len(b), bool)
    for start in range(0, len(b), CHUNK):
        rows = slice(start, start + CHUNK)
        s = np.atleast_2d(center[rows] if center.ndim == 2 else center).T
        dual = _Dual(Q, products, (b[rows] @ inverse).T - Q.T @ s, -s, high=1 - s, stretch=stretch)
        y, nu = _solve(dual)
        x[rows] = (s + y).T
        gap[rows], converged[rows] = dual.verdict(nu, y)
    return Nearest(x, gap, converged)


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual of N rows, the batch in the last axis: find ν (r, N) with Qᵀ clip(Q ν, low, high) = t.

    ``stretch`` (r,) are the singular values of A, the largest scaled to 1; ``low`` and ``high`` are (d, N) or
    (d, 1).
    """

    Q: Array
    products: Array
    t: Array
    low: Array
    high: Array
    stretch: Array

    def point(self, nu: Array) -> tuple[Array, Array]:
        """The y = x − s = clip(Q ν, low, high) (d, N), and the entries strictly between."""
        z = self.Q @ nu
        y = np.minimum(np.maximum(z, self.low), self.high)
        return y, y == z

    def residual(self, y: Array) -> Array:
        """The gradient t − Qᵀy of θ, (r, N)."""
        F: Array = self.t - self.Q.T @ y
        return F

    def small(self, F: Array) -> Array:
        """Whether a residual counts as 0, per row."""
        size = 1 + np.abs(self.t).max(axis=0, initial=0.0)
        small: Array = np.abs(F).max(axis=0, initial=0.0) <= TOLERANCE * size
        return small

    def solved(self, y: Array) -> Array:
        """Whether Qᵀy = t, per row."""
        return self.small(self.residual(y))

    def impossible(self, y: Array) -> Array:
        """Whether the residual F separates t from the box: Fᵀt > max Fᵀ Qᵀy (Farkas)."""
        F = self.residual(y)
        z = self.Q @ F
        reach = np.maximum(z * self.low, z * self.high).sum(axis=0)
        excess = (F * self.t).sum(axis=0) - reach
        impossible: Array = excess > TOLERANCE * np.linalg.norm(F, axis=0)
        return impossible

    def verdict(self, nu: Array, y: Array) -> tuple[Array, Array]:
        """The gap (N,) of :class:`Nearest`, and whether y is optimal: Qᵀy = t, or no move brings A x nearer
        to b (to 1e3 of the tolerance).
        """
        optimal = self.solved(y)
        gap = np.abs((nu * self.residual(y)).sum(axis=0))
        left = np.flatnonzero(~optimal)
        if len(left):
            optimal[left], gap[left] = self.take(left)._stationary(y[:, left])
        return gap, optimal

    def _stationary(self, y: Array) -> tuple[Array, Array]:
        """Whether ‖A x − b‖ has no descent inside the box, and the largest decrease that its slope allows."""
        descent: Array = self.Q @ (self.stretch[:, None] ** 2 * self.residual(y))  # Aᵀ(b − A x), A scaled
        still = np.abs(np.clip(y + descent, self.low, self.high) - y).max(axis=0, initial=0.0)
        promised = (descent * (np.where(descent > 0, self.high, self.low) - y)).sum(axis=0)
        return still <= 1e3 * TOLERANCE, promised

    def settled(self, y: Array) -> Array:
        """Whether y is optimal, near a solution, or proves that the box holds none: the slope allows less
        than the distance.
        """
        optimal, promised = self._stationary(y)
        distance = np.linalg.norm(self.stretch[:, None] * self.residual(y), axis=0)
        settled: Array = optimal & ((distance <= NEAR) | (promised < distance**2 / 4))
        return settled

    def smallest(self) -> Array:
        """Dual ν (r, N) by the active-set method."""
        shape = len(self.Q), self.t.shape[1]
        return active_set.smallest(
            self.Q, self.products, self.t, np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape)
        )

    def take(self, rows: Array) -> _Dual:
        """The problem of some of the rows."""
        low, high = (a[:, rows] if a.shape[1] > 1 else a for a in (self.low, self.high))
        return _Dual(self.Q, self.products, self.t[:, rows], low, high=high, stretch=self.stretch)


def _solve(dual: _Dual) -> tuple[Array, Array]:
    """Primal y (d, N) and dual ν (r, N), by the stages of the module."""
    nu, left = _newton(dual)
    if len(left):
        part = dual.take(left)
        nu[:, left] = part.smallest()
        left = left[~part.solved(part.point(nu[:, left])[0])]
    metrics = np.ones_like(dual.stretch), dual.stretch**-2
    for metric, (epsilon, most) in zip(metrics, PROXIMAL, strict=False):
        if len(left):
            part = dual.take(left)
            first = metric is metrics[0]
            nu[:, left] = _proximal(part, epsilon * metric[:, None], most, certify=first)
            left = left[~part.solved(part.point(nu[:, left])[0])]
    y, _ = dual.point(nu)
    if len(left):
        left = left[~dual.take(left).settled(y[:, left])]
    for row in left:
        from vflens.numerics.estimators import box_program

        one = dual.take(np.array([row]))
        y[:, row], nu[:, row] = box_program.nearest(
            one.Q, one.t[:, 0], one.low[:, 0], one.high[:, 0], one.stretch
        )
    return y, nu


def _newton(dual: _Dual, steps: int = 3) -> tuple[Array, Array]:
    """ν by undamped Newton, and the rows that it did not solve. It works on unsolved rows only."""
    nu = dual.t.copy()
    y, inside = dual.point(nu)
    left, failed = np.flatnonzero(~inside.all(axis=0)), []
    dual, y, inside = dual.take(left), y[:, left], inside[:, left]
    for step in range(steps + 1):
        F = dual.residual(y)
        bad = np.flatnonzero(~dual.small(F))
        left, dual = left[bad], dual.take(bad)
        if step == steps or not len(left):
            break
        move = held.solve(dual.Q, dual.products, ~inside[:, bad], F[:, bad], SINGULAR)
        ok = np.isfinite(move[0])
        if not ok.all():
            failed.append(left[~ok])
            left, dual, move = left[ok], dual.take(ok), move[:, ok]
        nu[:, left] += move
        y, inside = dual.point(nu[:, left])
    return nu, np.sort(np.concatenate([*failed, left]))


def _proximal(dual: _Dual, D: Array, most: int, *, certify: bool) -> Array:
    """ν after proximal point steps, from 0, until Qᵀy = t or y stays the same; ``D`` (r, 1) includes ε.

    ``certify`` ends also when Qᵀy = t is proved impossible.
    """
    nu, left = np.zeros_like(dual.t), np.arange(dual.t.shape[1])
    before = dual.point(nu)[0]
    for _ in range(most):
        nu[:, left] = _proximal_step(dual, D, nu[:, left])
        y, _ = dual.point(nu[:, left])
        moving = ~dual.solved(y) & (np.abs(y - before).max(axis=0) > TOLERANCE / 10)
        if certify:
            moving &= ~dual.impossible(y)
        left, dual, before = left[moving], dual.take(moving), y[:, moving]
        if not len(left):
            break
    return nu


def _proximal_step(dual: _Dual, D: Array, center: Array) -> Array:
    """Argmax of θ(ν) − ½(ν − center)ᵀD(ν − center), by Newton with a line search."""
    result, nu, left = center.copy(), center, np.arange(center.shape[1])
    for _ in range(NEWTON_STEPS):
        y, inside = dual.point(nu)
        gradient = dual.residual(y) - D * (nu - center)
        bad = np.abs(gradient).max(axis=0) > 1e-13 * (1 + np.abs(nu).max(axis=0))
        left, dual, nu, center = left[bad], dual.take(bad), nu[:, bad], center[:, bad]
        if not len(left):
            break
        H, i = cholesky.gram(dual.Q, inside[:, bad].astype(np.float64)), np.arange(len(D))
        H[i, i] += D
        step = cholesky.solve(cholesky.factor(H), gradient[:, bad])
        result[:, left] = nu = nu + _length(dual, D, nu, step, center) * step
    return result


def _length(dual: _Dual, D: Array, nu: Array, step: Array, center: Array) -> Array:
    """τ (N,) of the step: 1, cut by the secant while the slope at its end turned by more than half."""

    def slope(tau: Array) -> Array:
        trial = nu + tau * step
        along: Array = ((dual.residual(dual.point(trial)[0]) - D * (trial - center)) * step).sum(axis=0)
        return along

    tau = np.ones(step.shape[1])
    start = slope(0 * tau)
    for _ in range(5):
        end = slope(tau)
        over = end < -0.5 * start
        if not over.any():
            break
        tau[over] *= start[over] / (start[over] - end[over])
    return tau
