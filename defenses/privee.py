"""PRIVEE: multiply a row's sorted scores by secret factors (Madabushi et al., arXiv:2512.12840).

One draw of factors serves all rows of a run, as in the authors' code: who knows that undoes it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vflens.numerics.theory.privee import Variant, factors, multiplied
from vflens.plugins.defense import Context, Defense
from vflens.randomness import generator
from vflens.types import Array


class Privee(Defense):
    """s ↦ A s for the scores s of a row in rising order; see :mod:`vflens.numerics.theory.privee`.

    A s may be negative. It is released through a rising line that all know, as numbers that are scores; so
    order and ratios of differences are those of A s.
    """

    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({"variant": "privee++"}, {}, {"epsilon": 0.01})
    unclaimed: ClassVar[str] = "it promises order, and negative factors turn it around"

    variant: Variant = Field("privee", description="how the factors are drawn")
    epsilon: float = Field(
        0.1, ge=1e-3, le=1e3, description="ε of `privee`: factors grow with 1/ε; `privee++` reads none"
    )

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Logarithms (n, k) of the released numbers."""
        known = factors(self.variant, log_c.shape[1], self.epsilon)
        v = multiplied(np.exp(log_c), known.drawn(generator(ctx.key("factors", str(log_c.shape[1])))))
        with np.errstate(divide="ignore"):  # log 0 = −∞ is the answer
            return np.log(np.maximum(known.shown(v), 0.0))
