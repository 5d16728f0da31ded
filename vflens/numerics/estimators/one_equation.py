"""The relaxed Chebyshev centre of one equation a·x = c (k = 2), without a solver, for a whole batch.

Reflected so that a ≥ 0, with y = x − ½ and c − ½Σa_i ≥ 0 written c. Diagonals of a feasible G are the s_i²
whose lengths a_i s_i close a polygon, so that with j the longest side RCC1 is the concave program

    max Σ_{i≠j} v_i + min(v_j, S²/a_j²)   over a·y = c,      v_i = ¼ − y_i²,   S = Σ_{i≠j} a_i √v_i.

If RCC2's point violates the polygon with side j, one of two cases holds.

1. y_i = 0 for all i ≠ j, if the minimum is then its second term: no value is larger.
2. A kink, v_j = S²/a_j². With y_i = ½ sin φ_i its multipliers r, μ solve

       sin φ_i + r a_i tan φ_i = μ a_i  (i ≠ j),    sin φ_j − r a_j tan φ_j = μ a_j,
       Σ a_i sin φ_i = 2c,                          Σ_{i≠j} a_i cos φ_i = a_j cos φ_j.

   Newton starts where the segment from RCC2's point to that of case 1 meets the kink, and takes about three
   steps.

Bounds that hold for any r and φ judge every answer: α_i = 1 + r a_i/cos φ_i and the α_j < 1 with
Wᵀdiag(α)W ⪰ I singular are dual feasible, and y(α) with its largest polygon is primal feasible
(:mod:`vflens.numerics.estimators.relaxed_center`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators.relaxed_center import Center

#: Steps of regula falsi for the start, and at most of Newton; the gap at which RCC2's point stays.
START, NEWTON, NOTHING = 6, 12, 1e-10


def relaxed_center(a: Array, x: Array) -> Center:
    """RCC1 of a·x = c for ``a`` (d,) not 0 and RCC2's points ``x`` (N, d); a failed row has a large gap."""
    sign = np.where(a < 0, -1.0, 1.0)
    a, y = np.abs(a), sign[:, None] * (x.T - 0.5)
    turn = np.where(a @ y < 0, -1.0, 1.0)
    y *= turn
    value = (0.25 - y * y).sum(axis=0)
    gap = value - _primal(a, y)
    left = np.flatnonzero(gap > NOTHING)
    system = _System.of(a, y[:, left])
    alone, bound = system.dominated()
    y[:, left[alone]], value[left[alone]], gap[left[alone]] = system.point[:, alone], bound[alone], 0.0
    left = left[~alone]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y[:, left], value[left], gap[left] = system.take(~alone).kink()
    return Center((0.5 + sign[:, None] * turn * y).T, value, gap)


def _primal(a: Array, y: Array) -> Array:
    """Tr G (N,) of the best G for y (d, N): Σ v_i, the longest side at most the sum of the others."""
    v = np.maximum(0.25 - y * y, 0.0)
    side = a[:, None] * np.sqrt(v)
    longest = side.argmax(axis=0)
    others = side.sum(axis=0) - side.max(axis=0)
    excess = np.maximum(side.max(axis=0) ** 2 - others**2, 0.0) / np.maximum(a[longest], 1e-300) ** 2
    value: Array = v.sum(axis=0) - excess
    return value


@dataclass(frozen=True, eq=False)
class _System:
    """Rows with the batch in the last axis: ``a`` (d,), RCC2's ``y`` and the ``point`` of case 1 (d, N),
    ``j`` and ``c`` (N,).
    """

    a: Array
    y: Array
    point: Array
    j: Array
    c: Array

    @classmethod
    def of(cls, a: Array, y: Array) -> _System:
        """The system at RCC2's points."""
        j = (a[:, None] * np.sqrt(np.maximum(0.25 - y * y, 0.0))).argmax(axis=0)
        c, point = a @ y, np.zeros_like(y)
        point[j, np.arange(len(j))] = c / a[j]
        return cls(a, y, point, j, c)

    def take(self, rows: Array) -> _System:
        """Some of the rows."""
        return _System(self.a, self.y[:, rows], self.point[:, rows], self.j[rows], c=self.c[rows])

    def dominated(self) -> tuple[Array, Array]:
        """Whether the answer is ``point``, and its value."""
        yj, aj = self.c / self.a[self.j], self.a[self.j]
        second = ((self.a.sum() - aj) / 2 / aj) ** 2
        return 0.25 - yj * yj >= second, (len(self.a) - 1) / 4 + second

    def kink(self) -> tuple[Array, Array, Array]:
        """The answers y (d, N), φ(α) and the gap, by Newton."""
        at = np.arange(len(self.j))
        aj, w = self.a[self.j], np.repeat(self.a[:, None], len(self.j), axis=1)
        w[self.j, at] = 0.0
        newton = _Newton(w, aj, self.c, *self._start(w, aj))
        for _ in range(NEWTON):
            if not newton.step():
                break
        theta, beta = newton.multipliers()
        alpha = 1 + beta
        alpha[self.j, at] = 1 - theta
        share = self.a[:, None] / alpha
        total = self.a @ share
        y, value = self.c / total * share, alpha.sum(axis=0) / 4 - self.c**2 / total
        inside = (np.abs(y) <= 0.5).all(axis=0) & (theta < 1)
        return y, value, np.where(inside, value - _primal(self.a, y), np.inf)

    def _start(self, w: Array, aj: Array) -> tuple[Array, Array]:
        """Sines of φ_i (d, N), 0 for j, and of φ_j (N,), between y and ``point``, near the kink."""
        at, move = np.arange(len(self.j)), self.point - self.y

        def excess(share: Array) -> Array:
            y = self.y + share * move
            side = (w * np.sqrt(np.maximum(0.25 - y * y, 0.0))).sum(axis=0)
            long: Array = (0.25 - y[self.j, at] ** 2) * aj**2 - side**2
            return long

        low, high = np.zeros(len(aj)), np.ones(len(aj))
        above, below = excess(low), excess(high)
        share = low
        for _ in range(START):
            share = (low * below - high * above) / (below - above)
            value = excess(share)
            up = value > 0
            low, high = np.where(up, share, low), np.where(up, high, share)
            above, below = np.where(up, value, above / 2), np.where(up, below / 2, value)
        sine = 2 * (self.y + share * move)
        sine_j = sine[self.j, at]
        return np.where(w > 0, sine, 0.0), sine_j


class _Newton:
    """Newton on the kink's equations; ``w`` (d, N) is a with a 0 for j. Eliminating the φ_i, then φ_j, leaves
    two unknowns.
    """

    def __init__(self, w: Array, aj: Array, c: Array, sine: Array, sine_j: Array) -> None:
        self.w, self.aj, self.c = w, aj, c
        self.phi, self.psi = np.arcsin(sine), np.arcsin(np.minimum(sine_j, 1 - 1e-6))
        u, uj = w * np.tan(self.phi), aj * np.tan(self.psi)  # least squares for r and μ
        uu, uw, ww = (u * u).sum(axis=0) + uj**2, (u * w).sum(axis=0) - uj * aj, (w * w).sum(axis=0) + aj**2
        us, ws = (u * sine).sum(axis=0) - uj * sine_j, (w * sine).sum(axis=0) + aj * sine_j
        most = np.cos(self.psi) / aj
        self.r = np.clip((uw * ws - us * ww) / (uu * ww - uw * uw), 1e-3 * most, 0.999 * most)
        self.mu = (uu * ws - uw * us) / (uu * ww - uw * uw)

    def step(self) -> bool:
        """One step; False where no row needed it."""
        w, aj, r = self.w, self.aj, self.r
        s, cos, sj, cj = np.sin(self.phi), np.cos(self.phi), np.sin(self.psi), np.cos(self.psi)
        tan, tj = s / cos, sj / cj
        F = s + r * w * tan - self.mu * w
        f1 = 2 * self.c - (w * s).sum(axis=0) - aj * sj
        f2 = aj * cj - (w * cos).sum(axis=0)
        f3 = r * aj * tj + self.mu * aj - sj
        wrong = max(np.nanmax(np.abs(f), initial=0.0) for f in (F, f1, f2, f3))
        D = cos + r * w / cos**2
        weight = w / D
        f1 += (weight * cos * F).sum(axis=0)
        f2 -= (weight * s * F).sum(axis=0)
        weight *= w
        p, q, t = ((weight * f).sum(axis=0) for f in (cos, s, s * tan))
        k = (cj - r * aj / cj**2) / (aj * cj)
        a11, a12, a21, a22 = t + tj * q, -q - tj * p, k * q - aj * tj, -k * p - aj
        g1, g2 = f2 - tj * f1, f3 - k * f1
        determinant = a11 * a22 - a12 * a21
        dr, dmu = (g1 * a22 - g2 * a12) / determinant, (a11 * g2 - a21 * g1) / determinant
        self.phi = _inside(self.phi, (w * (dmu - tan * dr) - F) / D)
        self.psi = _inside(self.psi, (f1 + q * dr - p * dmu) / (aj * cj))
        self.r, self.mu = np.maximum(r + dr, r / 5), np.maximum(self.mu + dmu, 0.0)
        return bool(wrong > 1e-8)

    def multipliers(self) -> tuple[Array, Array]:
        """θ (N,) and β (d, N): θ Σ a_i²/β_i = a_j², which makes α = 1 + β, 1 − θ for j, feasible."""
        beta = self.r * self.w / np.cos(self.phi)
        inverse = np.divide(self.w**2, beta, out=np.zeros_like(beta), where=self.w > 0)
        return self.aj**2 / inverse.sum(axis=0) * (1 - 1e-14), beta


def _inside(angle: Array, step: Array) -> Array:
    """The angle + step, which covers at most three quarters of the way to 0 or π/2."""
    clipped: Array = np.clip(angle + step, angle / 4, angle + 0.75 * (np.pi / 2 - angle))
    return clipped
