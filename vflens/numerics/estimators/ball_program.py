"""Quadratics and their ratios, maximised over a ball: exact, although neither is concave.

The trust-region subproblem (Moré and Sorensen, 1983) has a proof of its *global* maximum: ‖y‖ ≤ ρ
maximises yᵀBy + 2gᵀy exactly when (νI − B)y = g, ν(ρ − ‖y‖) = 0, ν ≥ max(0, λ_max(B)) for some ν. A ratio
is raised by Dinkelbach's method (1967): maximise N − tD at t = N/D until the ratio stops growing.
"""

import numpy as np

from vflens.array import Array

_ROUNDS = 60  # Dinkelbach converges superlinearly: a dozen suffice


def largest_on_ball(B: Array, g: Array, radius: float) -> Array:
    """A global maximiser y (d,) of yᵀBy + 2gᵀy over ‖y‖ ≤ ``radius`` > 0; B (d, d) symmetric, any signs."""
    eigenvalues, Q = np.linalg.eigh(B)
    gamma, low = Q.T @ g, max(0.0, float(eigenvalues[-1]))
    scale = max(float(np.abs(eigenvalues).max()), float(np.linalg.norm(gamma)) / radius)
    if scale == 0.0:  # a constant: every point is a maximiser
        return np.zeros(len(g))

    def at(nu: float) -> Array:
        z: Array = gamma / (nu - eigenvalues)
        return z

    start = low + 1e-14 * scale
    z = at(start)
    if np.linalg.norm(z) > radius:
        end = low + 2 * float(np.linalg.norm(gamma)) / radius
        from scipy.optimize import brentq  # slow to load

        nu = brentq(lambda nu: 1 / radius - 1 / np.linalg.norm(at(nu)), start, end, xtol=1e-15 * scale)
        z = at(nu)
        z *= radius / np.linalg.norm(z)
    elif eigenvalues[-1] >= 0:  # the hard case: g has no part along the top direction, which is free
        z[-1] = np.copysign(np.sqrt(radius**2 - z[:-1] @ z[:-1]), z[-1])
    y: Array = Q @ z
    return y


def largest_ratio(B: Array, g: Array, c: float, C: Array, *, center: Array, radius: float) -> Array:
    """A global maximiser x (d,) of (xᵀBx + 2gᵀx + c)/(xᵀCx) over ‖x − center‖ ≤ ``radius``.

    Args:
        B: (d, d) symmetric.
        g: (d,).
        c: the numerator's constant.
        C: (d, d) symmetric, positive definite.
        center: (d,), longer than ``radius``: the ball must leave 0 out, or the ratio has no maximum.
        radius: > 0.
    """

    def ratio(x: Array) -> float:
        return float((x @ B @ x + 2 * g @ x + c) / (x @ C @ x))

    x, best = center, ratio(center)
    for _ in range(_ROUNDS):
        D = B - best * C
        candidate = center + largest_on_ball(D, g + D @ center, radius)
        if ratio(candidate) <= best:
            break
        x, best = candidate, ratio(candidate)
    return x
