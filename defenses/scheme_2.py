"""The best noise √α v₁, then the label lifted to the top: RVG §VII-B, scheme 2.

Where the noise moved the arg-max, label and usurper tie exactly, unless a margin keeps them apart.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import log_softmax

from vflens.defenses._direction import SENSE, Sense, arg_max_set, leading_direction, signed
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Owner


class Scheme2(Defense):
    """z' = z + √α v₁, then z̃_{i*} = max_j z'_j + margin, i* the arg-max set of z.

    With margin 0, as printed, it keeps that i* is *among* the maximisers: the first maximiser may be another
    class (RVG's own data: in 10 to 54 % of the rows).
    """

    needs_parameters: ClassVar[bool] = True
    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({"alpha": 1.0}, {"alpha": 10.0}, {"alpha": 100.0})

    alpha: float = Field(1.0, gt=0, allow_inf_nan=False, description="power α of the noise on the logits")
    margin: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="how far the label is lifted above the others, in logits; 0: exact ties",
    )
    sense: Sense = Field("plus", description=SENSE)

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """v₁ (k,); see :func:`vflens.defenses._direction.leading_direction`."""
        return {"direction": leading_direction(owner)}

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Normalised log-probabilities (n, k); −∞ stays −∞."""
        moved = log_c + np.sqrt(self.alpha) * signed(ctx.state["direction"], self.sense)
        lifted = moved.max(axis=1, keepdims=True) + self.margin
        kept: Array = log_softmax(np.where(arg_max_set(log_c), lifted, moved), axis=1)
        return kept

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The arg-max set stays among the maximisers."""
        return Claim(argmax=True)
