"""(ε, δ)-local differential privacy of one release, per row (FAR Thm 2.5 and the exact values).

Two rows x, x' differ by at most Δ_j in column j. Δ is a *public* bound that the certificate states. For the
Gaussian ε depends on a = max ‖V^{-1/2}(x − x')‖ = λ^{1/4} ‖Π^{1/4} diag(Δ)‖_{∞,2}.

The theorem's ε, a(1 + √(2 ln 1/δ)), holds for a ≤ 2; it is false from a ≈ 3.44 on. The exact ε is that of
:mod:`vflens.numerics.gaussian_privacy`.

The ε hold for the released numbers (:mod:`vflens.numerics.discrete_noise`). These are whole steps of a grid,
which moves two rows at most :data:`ROUNDING` steps per column further apart, and the sampler's error is taken
from δ.
"""

from dataclasses import dataclass

import numpy as np

from vflens.errors import ConfigError
from vflens.numerics.discrete_noise import GAUSSIAN_STEP, LAPLACE_ERROR, LAPLACE_STEP, ideal, largest_epsilon
from vflens.numerics.gaussian_privacy import gaussian_epsilon
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.correlated import Correlated
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism, positive
from vflens.types import Array
from vflens.words import counted

#: Above this a, Thm 2.5 is not proved and, from 3.44 on, false.
THEOREM_LIMIT = 2.0
#: Largest a for which ε is computed: noise of less than a millionth of the diameter.
LARGEST = 1e7
#: The least δ.
LEAST_DELTA = 1e-300
#: Steps of the grid by which rounding can move two values of a column apart: one for the grid, one for
#: float64, whose error per value is at most half a step.
ROUNDING = 2


@dataclass(frozen=True, eq=False)
class Ldp:
    """ε of one release, one row, at ``delta`` for rows that differ by at most ``diameter`` (p,) per column.

    ``epsilon_theorem`` and ``epsilon_exact`` are None for the reason in ``reason``.
    """

    delta: float
    diameter: Array
    epsilon_theorem: float | None
    epsilon_exact: float | None
    reason: str | None


def local_privacy(mechanism: Mechanism, *, delta: float, diameter: Array | float) -> Ldp:
    """The guarantee of ``mechanism`` at ``delta`` in (0, 1) for a public ``diameter``, one number or one per
    column.

    Raises:
        ConfigError: δ is not in (0, 1), or a diameter is not positive.
    """
    span = checked_diameter(diameter, mechanism.width)
    checked_delta(delta)
    match mechanism:
        case Gaussian():
            return _gaussian_privacy(mechanism, delta, span)
        case Laplace():
            reason = "epsilon_theorem: Theorem 2.5 is about Gaussian noise; epsilon_exact holds with δ = 0"
            steps = float(np.sum(span / (LAPLACE_STEP * mechanism.scale))) + ROUNDING * mechanism.width
            return Ldp(delta, span, None, steps * LAPLACE_STEP * (1 + LAPLACE_ERROR), reason=reason)
        case Correlated():
            reason = "every x_iᵀα is released exactly: no finite ε holds for any δ < 1"
        case Bounded():
            reason = (
                "the noise has bounded support: rows whose supports do not overlap are distinguishable, "
                "so ε = ∞ unless δ covers that mass"
            )
        case _:
            reason = f"no ε is known for {mechanism.name} noise"
    return Ldp(delta, span, None, None, reason=reason)


def _gaussian_privacy(mechanism: Gaussian, delta: float, span: Array) -> Ldp:
    a = sensitivity(mechanism.pi, mechanism.lam, span) + rounding(mechanism.width)
    exact, largest = gaussian_epsilon(a, ideal(delta)), largest_epsilon(delta, mechanism.width)
    if exact > largest:
        reason = (
            f"Gaussian noise on {counted(mechanism.width, 'column')} is drawn finely enough for ε up to "
            f"{largest:.3g} at δ = {delta:g}, and here it is {exact:.4g}"
        )
        return Ldp(delta, span, None, None, reason=reason)
    theorem = float(a * (1 + np.sqrt(-2 * np.log(ideal(delta)))))
    if a > THEOREM_LIMIT:
        reason = f"epsilon_theorem: Theorem 2.5 holds for a ≤ 2 only, and here a = {a:.4g}"
        return Ldp(delta, span, None, exact, reason=reason)
    return Ldp(delta, span, theorem, exact, reason=None)


def rounding(width: int) -> float:
    """The grid's addition to a: :data:`ROUNDING` steps in each of ``width`` whitened coordinates."""
    return float(ROUNDING * GAUSSIAN_STEP * np.sqrt(width))


def checked_delta(delta: float) -> None:
    """Raise ConfigError unless :data:`LEAST_DELTA` ≤ δ < 1."""
    if not LEAST_DELTA <= delta < 1:
        raise ConfigError(
            f"delta is {delta}: give a probability from {LEAST_DELTA:g} up to, and below, 1, such as 1e-5"
        )


def checked_diameter(diameter: Array | float, width: int) -> Array:
    """Δ (p,) from one number or one per column."""
    span = positive("diameter", diameter)
    if span.ndim > 1 or span.size not in (1, width):
        raise ConfigError(
            f"diameter has {counted(span.size, 'number')}, the table {counted(width, 'column')}: give one "
            "each, or one for all"
        )
    return np.broadcast_to(span, (width,)).copy()


def sensitivity(pi: Array, lam: float, diameter: Array) -> float:
    """The a of the module. For full Π, where it is NP-hard, its bound λ^{1/4} (ΣΔ_iΔ_j|Π^{1/2}|_ij)^{1/2}.

    The bound is exact for a diagonal Π.

    Raises:
        ConfigError: a is too small or too large to compute an ε.
    """
    half = Gaussian(pi, lam).pi_power(0.5)
    largest = diameter.max()  # its square may be beyond float64
    with np.errstate(over="ignore"):
        a = float(lam**0.25 * largest * np.sqrt((diameter / largest) @ abs(half) @ (diameter / largest)))
    if not 0 < a < LARGEST:
        raise ConfigError(
            f"diameter {largest:g} is {a:.3g} deviations of the noise, for which no ε can be computed: check "
            "diameter, lambda and pi"
        )
    return a
