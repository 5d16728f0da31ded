"""The direction along which noise on the scores misleads least squares most (RVG Theorem 4), with a fixed
sign.
"""

from typing import Literal

import numpy as np

from vflens.errors import ConfigError
from vflens.numerics.linear_system import first_differences
from vflens.numerics.theory.distortion_theory import best_noise
from vflens.types import Array, Owner

Sense = Literal["plus", "minus"]
SENSE = "which way v₁ points: plus, its first entry of largest size is positive; minus, the opposite"


def leading_direction(owner: Owner) -> Array:
    """v₁ (k,), of unit length, orthogonal to 1: the leading right singular vector of A⁺J, A = J W_pas.

    Its sign is free and matters; here the first entry of largest size is positive.

    Raises:
        ConfigError: the owner knows no parameters of the passive parties, or they are all equal between
            classes.
    """
    if owner.parameters is None:
        raise ConfigError(
            f"a scheme along v₁ at {owner.name!r}: it needs the passive parties' weights, only a coordinator "
            "to which they are disclosed has them"
        )
    weight = owner.parameters["weight"]
    J = first_differences(len(weight))
    A = J @ weight
    if not A.any():
        raise ConfigError(
            "a scheme along v₁: the disclosed weights are the same for every class, no direction leads: "
            "train longer, or remove the scheme"
        )
    v = best_noise(A, J, 1.0).direction
    size = np.abs(v)
    leading = int(
        np.flatnonzero(size >= (1 - 1e-9) * size.max())[0]
    )  # rounding must not choose among equal entries
    direction: Array = v * np.sign(v[leading])
    return direction


def signed(direction: Array, sense: Sense) -> Array:
    """``direction`` or its opposite."""
    return direction if sense == "plus" else -direction


def arg_max_set(log_c: Array) -> Array:
    """Places of each row's largest scores, bool (n, k): several if there are ties."""
    top: Array = log_c == log_c.max(axis=1, keepdims=True)
    return top
