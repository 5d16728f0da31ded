"""Noise along v₁, the label's entry raised to its largest: RVG §VII-B, scheme 1.

The label stays. The coordinator must know the passive parties' weights, which these disclose to it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import log_softmax

from vflens.defenses._direction import SENSE, Sense, arg_max_set, leading_direction, signed
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Owner


class Scheme1(Defense):
    """c̃ = softmax(z + n), n = √α ñ/‖ñ‖, ñ = v₁ with the entries at i* raised to max_j v_j.

    i* is the arg-max set: where there are ties, all of them are raised and stay tied. ‖n‖² = α for every row.
    """

    needs_parameters: ClassVar[bool] = True
    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({"alpha": 1.0}, {"alpha": 10.0}, {"alpha": 100.0})

    alpha: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="power α = ‖n‖² of the noise on the logits"
    )
    sense: Sense = Field("plus", description=SENSE)

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """v₁ (k,); see :func:`vflens.defenses._direction.leading_direction`."""
        return {"direction": leading_direction(owner)}

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Normalised log-probabilities (n, k); −∞ stays −∞."""
        v = signed(ctx.state["direction"], self.sense)
        noise = np.where(arg_max_set(log_c), v.max(), v)
        noise *= np.sqrt(self.alpha) / np.linalg.norm(noise, axis=1, keepdims=True)
        moved: Array = log_softmax(log_c + noise, axis=1)
        return moved

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Nothing is raised more than the label: the arg-max set stays among the maximisers."""
        return Claim(argmax=True)
