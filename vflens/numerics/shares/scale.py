"""The integers of a training on shares, and the bounds within which they do not overflow."""

import math
from dataclasses import dataclass

from vflens.numerics.shares.sigmoid import LARGEST_RESIDUAL, RESIDUAL_BITS
from vflens.numerics.shares.truncation import LIMIT

#: Fraction bits of a feature, of a parameter, and of a gradient: a feature times a residual.
FEATURE_BITS, PARAMETER_BITS, GRADIENT_BITS = 16, 20, 16 + RESIDUAL_BITS
#: No feature lies beyond: columns are scaled to [0, 1].
LARGEST_FEATURE = 1.0

_COARSEST_RATE = 32  # an integer from it on is within 1/64 of the rate that it stands for


@dataclass(frozen=True)
class Scale:
    """The rates of a step θ ← θ − η(Σ residual·x/n + 2λθ) as integers.

    ``rate_bits`` are the fraction bits of η/n. A step's change of θ has ``shift`` bits too many, and is then
    truncated.
    """

    learning_rate: float
    l2: float
    rate_bits: int

    @property
    def shift(self) -> int:
        """How many bits a step's change is truncated by."""
        return GRADIENT_BITS + self.rate_bits - PARAMETER_BITS

    def rate(self, rows: int) -> int:
        """η/n of a batch of n = ``rows``."""
        return round(math.ldexp(self.learning_rate / rows, self.rate_bits))

    @property
    def decay(self) -> int:
        """2ηλ, of the penalty λ Σθ²."""
        return round(math.ldexp(2 * self.learning_rate * self.l2, self.shift))

    def effective_rate(self, rows: int) -> float:
        """The learning rate that :meth:`rate` stands for."""
        return math.ldexp(self.rate(rows) * rows, -self.rate_bits)

    @property
    def largest_batch(self) -> int:
        """The most rows whose η/n is fine enough."""
        return int(math.ldexp(self.learning_rate, self.rate_bits) / _COARSEST_RATE)

    def largest_change(self, rows: int) -> float:
        """No |entry| of a step's change of θ exceeds it before it is truncated; it is below 2⁶²."""
        gradient = rows * LARGEST_FEATURE * LARGEST_RESIDUAL * self.rate(rows)
        return math.ldexp(gradient * (2 if self.l2 else 1), GRADIENT_BITS)


def fitting(learning_rate: float, l2: float, batch_size: int) -> Scale:
    """The finest scale at which no number of a run overflows, whatever its rows and however long it is.

    An entry of a gradient is at most n·1.01. As 2ηλ ≤ 1, a parameter stays within 1.01/(2λ), and the penalty
    changes it by as much as the gradient at most. Without a penalty T steps lead at most to 1.01·T·η.

    Raises:
        ValueError: there is none; names the setting and the remedy.
    """
    if 2 * learning_rate * l2 > 1:
        raise ValueError(
            f"l2 = {l2:g} with learning_rate = {learning_rate:g}: their product is at most 1/2, as a step "
            "must not turn a parameter round; take less of one of them"
        )
    change = learning_rate * LARGEST_FEATURE * LARGEST_RESIDUAL * (2 if l2 else 1)
    bits = math.ceil(math.log2(LIMIT / change)) - 1 - GRADIENT_BITS
    scale = Scale(learning_rate, l2, min(bits, 62 + PARAMETER_BITS - GRADIENT_BITS))
    if scale.shift < 2 or batch_size > scale.largest_batch:
        raise ValueError(
            f"batch_size = {batch_size} with learning_rate = {learning_rate:g}: beside the "
            f"{GRADIENT_BITS} fraction bits of a gradient too few are left for learning_rate / batch_size; "
            f"take a batch_size of at most {max(1, scale.largest_batch)}"
        )
    return scale
