"""Π and λ from the owner's aim: a target error, an (ε, δ) for a public diameter, proportional noise.

Gaussian   E‖Π^{1/2}(x − x̂)‖² ≥ Tr Π^{1/2} / √λ for unbiased x̂, so λ = (Tr Π^{1/2} / T)² for a target T.
"""

from typing import Literal

import numpy as np

from vflens.errors import ConfigError
from vflens.numerics.discrete_noise import LAPLACE_ERROR, LAPLACE_STEP, ideal, largest_epsilon
from vflens.numerics.gaussian_privacy import gaussian_sensitivity
from vflens.table_noise.accounting import (
    ROUNDING,
    checked_delta,
    checked_diameter,
    rounding,
    sensitivity,
)
from vflens.table_noise.mechanisms import Gaussian, checked_pi, positive
from vflens.types import Array
from vflens.words import counted


def identity_pi(width: int) -> Array:
    """Π = I as its diagonal (p,): the same noise on every column."""
    return np.ones(width)


def standardising_pi(deviation: Array) -> Array:
    """Π = diag(s⁻⁴) as its diagonal (p,): noise in proportion to ``deviation`` s (p,), computed from private
    data.

    Raises:
        ConfigError: a column is constant, or its s⁻⁴ leaves the range of numbers.
    """
    s = np.asarray(deviation, np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        pi = s**-4.0
    if not (np.isfinite(pi) & (pi > 0)).all():
        j = int(np.argmin(np.isfinite(pi) & (pi > 0)))
        raise ConfigError(
            f"column {j} has standard deviation {s[j]:g}: leave out constant columns, or choose pi = identity"
        )
    return pi


def lambda_for_error(pi: Array, target: float) -> float:
    """λ whose Cramér–Rao bound per row, E‖Π^{1/2}(x − x̂)‖², is ``target``; for Π = I that is the squared
    error.

    For the optimal Gaussian, and for Laplace noise matched by Cramér–Rao bound.
    """
    positive("target_mse", target)
    root = Gaussian(pi, 1.0).pi_power(0.5)
    return _as_lambda(f"target_mse {target:g}", np.trace(root) / target, 2)


def lambda_for_privacy(
    pi: Array,
    *,
    epsilon: float,
    delta: float,
    diameter: Array | float,
    mechanism: Literal["gaussian", "laplace"] = "gaussian",
    matched: Literal["cramer_rao", "variance"] = "cramer_rao",
) -> float:
    """The largest λ (least noise) that gives (ε, δ) exactly for rows within ``diameter``; Laplace has δ = 0.

    Raises:
        ConfigError: no λ does, because ε exceeds the sampler's limit or is below the cost of the grid's
            rounding.
    """
    positive("epsilon", epsilon)
    checked_delta(delta)
    pi = checked_pi(pi)
    span = checked_diameter(diameter, len(pi))
    asked = f"epsilon {epsilon:g} for diameter {span.max():g}"
    if mechanism == "gaussian":
        largest = largest_epsilon(delta, len(pi))
        if epsilon > largest:
            raise ConfigError(
                f"epsilon is {epsilon:g}: give a number up to {largest:.3g}, for which Gaussian noise on "
                f"{counted(len(pi), 'column')} is drawn finely enough at delta = {delta:g}, or a larger delta"
            )
        a = gaussian_sensitivity(epsilon, ideal(delta)) - rounding(len(pi))
        return _as_lambda(asked, _above_rounding(epsilon, a) / sensitivity(pi, 1.0, span), 4)
    if pi.ndim != 1:
        raise ConfigError("pi is a full matrix: Laplace noise is independent by column, give a diagonal pi")
    unit = np.sum(span * pi**0.25) * (1.0 if matched == "cramer_rao" else np.sqrt(2))
    left = epsilon / (1 + LAPLACE_ERROR) - ROUNDING * LAPLACE_STEP * len(pi)
    return _as_lambda(asked, _above_rounding(epsilon, left) / unit, 4)


def _above_rounding(epsilon: float, left: float) -> float:
    if left <= 0:
        raise ConfigError(
            f"epsilon is {epsilon:g}: rounding to the noise's grid alone costs more, give a larger one"
        )
    return left


def _as_lambda(asked: str, root: float, power: int) -> float:
    """λ = root^power."""
    with np.errstate(over="ignore", under="ignore"):
        lam = float(np.float64(root) ** power)
    if not (np.isfinite(lam) and lam > 0):
        raise ConfigError(f"{asked} needs lambda = {lam:g}, beyond float64: ask for another size of noise")
    return lam
