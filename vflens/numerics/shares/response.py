"""What a logit z is answered with, σ(z) or z itself: less the label it is the residual of a step on shares.

It is the only thing in which the two kinds of regression differ. Both open z + r, with a uniform mask r, and
take what they need from numbers that the dealer makes of r.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import ROUND_DOWN, Context
from typing import ClassVar

import numpy as np

from vflens.array import Array
from vflens.numerics.fixed_point import decoded, encoded
from vflens.numerics.shares.sigmoid import (
    HARMONICS,
    LARGEST_RESIDUAL,
    LOGIT_BITS,
    RESIDUAL_BITS,
    series,
    waves,
)
from vflens.numerics.shares.truncation import OFFSET, pair, truncated

_NEAR_ONE = 1e-4  # the series for the sigmoid errs by as much
_HALF = np.uint64(1 << (RESIDUAL_BITS - 1))


class Response(ABC):
    """A response of z, and what a step on shares needs of it."""

    #: Fraction bits of the response, of a label and so of a residual.
    bits: ClassVar[int]
    #: How many numbers the dealer gives for a logit.
    dealt: ClassVar[int]
    #: What is added to z + r before it is opened.
    offset: ClassVar[np.uint64] = np.uint64(0)
    #: The loss has the derivative ``slope``·residual.
    slope: ClassVar[int] = 1
    #: Whether a residual is bounded whatever the columns and the number of steps are.
    bounded: ClassVar[bool] = True

    @abstractmethod
    def of_logits(self, z: Array) -> Array:
        """The response of each of the logits ``z``, in real numbers."""

    @abstractmethod
    def logits(self, answered: Array) -> Array:
        """The logits whose responses are ``answered``, in real numbers."""

    def answered(self, z: Array) -> Array:
        """The response of ``z`` float64 (n, k) as it is on shares if its mask is 0, in real numbers."""
        opened = encoded(z, LOGIT_BITS, 1)
        share = self.share(opened + self.offset, self.of_mask(np.zeros_like(opened)))
        return decoded(share, self.bits)

    @abstractmethod
    def of_mask(self, mask: Array) -> Array:
        """What the dealer makes of r uint64 (n, k): uint64 (:attr:`dealt`, n, k)."""

    @abstractmethod
    def share(self, opened: Array, of_mask: Array, *, first: bool = True) -> Array:
        """A share of the response, uint64 (n, k); from :meth:`of_mask` itself, the response.

        Args:
            opened: z + r + offset, uint64 (n, k).
            of_mask: :meth:`of_mask` of r, or a share of it.
            first: whether this is the share that takes up what is public.
        """

    @abstractmethod
    def largest_gradient(self, learning_rate: float, l2: float, columns: int, steps: int) -> float:
        """No |entry| of the gradient of the penalised mean loss exceeds it in so many ``steps``.

        Args:
            learning_rate: η.
            l2: λ of the penalty λ Σθ².
            columns: d, the bias among them; all lie in [−1, 1].
            steps: T.

        Raises:
            ValueError: nothing bounds it; names the setting and the remedy.
        """


class SigmoidResponse(Response):
    """σ(z), of logistic regression: see :mod:`vflens.numerics.shares.sigmoid`."""

    bits, dealt = RESIDUAL_BITS, 2 * HARMONICS

    def of_logits(self, z: Array) -> Array:
        found: Array = (1 + np.tanh(z / 2)) / 2
        return found

    def logits(self, answered: Array) -> Array:
        inside = np.clip(answered, _NEAR_ONE, 1 - _NEAR_ONE)
        found: Array = np.log(inside / (1 - inside))
        return found

    def of_mask(self, mask: Array) -> Array:
        return waves(mask).view(np.uint64).reshape(self.dealt, *mask.shape)

    def share(self, opened: Array, of_mask: Array, *, first: bool = True) -> Array:
        total = series(opened, of_mask.reshape(2, HARMONICS, *opened.shape))
        return total + _HALF if first else total

    def largest_gradient(self, learning_rate: float, l2: float, columns: int, steps: int) -> float:
        """That of the loss is 1.01 at most. As 2ηλ ≤ 1, a parameter stays within 1.01/(2λ), and the penalty
        has no larger one.
        """
        if 2 * learning_rate * l2 > 1:
            raise ValueError(
                f"l2 = {l2:g} with learning_rate = {learning_rate:g}: their product is at most 1/2, as a "
                "step must not turn a parameter round; take less of one of them"
            )
        return LARGEST_RESIDUAL * (2 if l2 else 1)


class IdentityResponse(Response):
    """z itself, of linear regression with the loss (z − y)², labels in [0, 1]; truncated to 20 bits.

    With η(d + λ) ≤ 1/2 a step is no further from c, the parameters whose response is ½ everywhere, than
    √(‖θ − c‖² + η(1 + λ)/2), whatever its rows: see :func:`reach`.
    """

    bits, dealt, offset, slope, bounded = 20, 2, OFFSET, 2, False
    _SHIFT = LOGIT_BITS - bits

    def of_logits(self, z: Array) -> Array:
        return z

    def logits(self, answered: Array) -> Array:
        return answered

    def of_mask(self, mask: Array) -> Array:
        return np.stack(pair(mask, self._SHIFT))

    def share(self, opened: Array, of_mask: Array, *, first: bool = True) -> Array:
        return truncated(opened, of_mask[0], of_mask[1], self._SHIFT, first=first)

    def largest_gradient(self, learning_rate: float, l2: float, columns: int, steps: int) -> float:
        if learning_rate * (columns + l2) > 1 / 2:
            raise ValueError(
                f"learning_rate = {learning_rate:g} with linear regression and d = {columns}, the columns of "
                "all parties and the bias: nothing bounds its parameters, take at most "
                f"{largest_rate(columns, l2)}, which is 1/(2(d + l2))"
            )
        far = reach(learning_rate, l2, columns, steps)
        return 2 * (0.5 + math.sqrt(columns) * far + l2 * (far + 0.5))


def reach(learning_rate: float, l2: float, columns: int, steps: int) -> float:
    """How far from c = (0, …, 0, ½) at the bias θ is after T ``steps`` of linear regression, at most.

    Of the n rows X and labels y of a step take A = [X/√n; √λ] and t = [y/√n; 0]. The step is
    θ − 2ηAᵀ(Aθ − t), ‖A‖² ≤ d + λ, and s = t − Ac is no longer than √(1 + λ)/2. With q = A(θ − c) − s the
    square of the distance grows by −4η(q + s)ᵀq + 4η²‖Aᵀq‖² ≤ −4η((1 − η(d + λ))‖q‖² + sᵀq), which is at
    most η‖s‖²/(1 − η(d + λ)) ≤ η(1 + λ)/2. The rate is within 1/64 of its integer: hence .52 in place of
    1/2. Rounding moves each parameter by less than 2⁻¹⁹.
    """
    grown = 0.25 + 0.52 * learning_rate * (1 + l2) * steps
    return math.sqrt(grown) + steps * math.sqrt(columns) * 2.0**-19


def largest_rate(columns: int, l2: float) -> float:
    """η = 1/(2(d + λ)), the largest of linear regression on d ``columns``; to three digits, none above it."""
    return float(Context(prec=3, rounding=ROUND_DOWN).create_decimal(0.5 / (columns + l2)))


SIGMOID, IDENTITY = SigmoidResponse(), IdentityResponse()
