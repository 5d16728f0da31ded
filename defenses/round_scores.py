"""Round the released probabilities to a few decimals.

The baseline of every score defence. Rounding makes ties and zeros, but the predicted class stays among the
maximisers.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class RoundScores(Defense):
    """Probabilities rounded to ``digits`` decimals; those that round to 0 are released as −∞.

    Not renormalised: the released probabilities are the rounded ones, and a factor common to a row
    cancels in every log-ratio. Where even the largest rounds to 0 (many classes, few digits) it is
    released as one unit of the last decimal, so that a label is left.
    """

    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({"digits": 3}, {"digits": 2}, {"digits": 1})

    digits: int = Field(2, ge=1, le=15, description="decimals kept")

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Rounded log-probabilities (n, k)."""
        rounded = np.round(np.exp(log_c), self.digits)
        largest = log_c == log_c.max(axis=1, keepdims=True)
        rounded[largest] = np.maximum(rounded[largest], 10.0**-self.digits)
        with np.errstate(divide="ignore"):  # log 0 = −∞ is the answer
            return np.log(rounded)

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Rounding never reorders: the arg-max stays among the maximisers."""
        return Claim(argmax=True)
