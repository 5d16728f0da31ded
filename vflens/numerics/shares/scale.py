"""The integers of a training on shares, and the bounds within which they do not overflow."""

import math
from dataclasses import dataclass

from vflens.numerics.shares.response import Response
from vflens.numerics.shares.truncation import LIMIT

#: Fraction bits of a feature and of a parameter.
FEATURE_BITS, PARAMETER_BITS = 16, 20
#: No feature lies beyond: columns are scaled to [0, 1].
LARGEST_FEATURE = 1.0

_COARSEST_RATE = 32  # an integer from it on is within 1/64 of the rate that it stands for


@dataclass(frozen=True)
class Scale:
    """The rates of a step θ ← θ − η(Σ f·residual·x/n + 2λθ) as integers, where f is the response's slope.

    ``rate_bits`` are the fraction bits of fη/n. A step's change of θ has ``shift`` bits too many, and is then
    truncated. No |entry| of the gradient of the penalised mean loss exceeds ``largest_gradient``.
    """

    response: Response
    learning_rate: float
    l2: float
    largest_gradient: float
    rate_bits: int

    @property
    def gradient_bits(self) -> int:
        """Fraction bits of a gradient: a feature times a residual."""
        return FEATURE_BITS + self.response.bits

    @property
    def shift(self) -> int:
        """How many bits a step's change is truncated by."""
        return self.gradient_bits + self.rate_bits - PARAMETER_BITS

    def rate(self, rows: int) -> int:
        """fη/n of a batch of n = ``rows``."""
        return round(math.ldexp(self.response.slope * self.learning_rate / rows, self.rate_bits))

    @property
    def decay(self) -> int:
        """2ηλ, of the penalty λ Σθ²."""
        return round(math.ldexp(2 * self.learning_rate * self.l2, self.shift))

    def effective_rate(self, rows: int) -> float:
        """The learning rate that :meth:`rate` stands for."""
        return math.ldexp(self.rate(rows) * rows, -self.rate_bits) / self.response.slope

    @property
    def largest_batch(self) -> int:
        """The most rows whose fη/n is fine enough."""
        whole = math.ldexp(self.response.slope * self.learning_rate, self.rate_bits)
        return int(whole / _COARSEST_RATE)

    def largest_change(self, rows: int) -> float:
        """No |entry| of a step's change of θ exceeds it before it is truncated; it is below 2⁶²."""
        changed = self.effective_rate(rows) * self.largest_gradient
        return math.ldexp(changed, self.gradient_bits + self.rate_bits)


def fitting(
    response: Response, learning_rate: float, l2: float, batch_size: int, *, columns: int, steps: int
) -> Scale:
    """The finest scale at which no number of a run overflows, whatever its rows.

    Args:
        response: of a logit.
        learning_rate: η.
        l2: λ of the penalty λ Σθ².
        batch_size: the most rows of a step.
        columns: of all parties, and the bias.
        steps: how many the run has.

    Raises:
        ValueError: there is none; names the setting and the remedy.
    """
    gradient = response.largest_gradient(learning_rate, l2, columns, steps)
    change = learning_rate * (1 + 0.5 / _COARSEST_RATE) * gradient
    bits = math.ceil(math.log2(LIMIT / change)) - 1 - FEATURE_BITS - response.bits
    most = 62 + PARAMETER_BITS - FEATURE_BITS - response.bits
    scale = Scale(
        response=response,
        learning_rate=learning_rate,
        l2=l2,
        largest_gradient=gradient,
        rate_bits=min(bits, most),
    )
    if scale.shift < 2 or batch_size > scale.largest_batch:
        raise ValueError(
            f"batch_size = {batch_size} with learning_rate = {learning_rate:g}: beside the "
            f"{scale.gradient_bits} fraction bits of a gradient too few are left for learning_rate / "
            f"batch_size; {_remedy(scale, larger=response.bounded or bits > most)}"
        )
    return scale


def _remedy(scale: Scale, *, larger: bool) -> str:
    """What makes room for the numbers of a run that ``scale`` has not; whether a ``larger`` rate does."""
    if scale.shift < 2:
        return "take a smaller learning_rate"
    more = "a larger learning_rate" if larger else "fewer epochs"
    if scale.largest_batch < 1:
        return f"take {more}"
    return f"take {more}, or a batch_size of at most {scale.largest_batch}"
