"""Logits drawn towards their common value, confidence taken away: RVG §VII-B, scheme 3.

The order of the scores stays; who knows α undoes it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from scipy.special import log_softmax

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class Scheme3(Defense):
    """z̃ = (1 − α)z + α1, hence c̃ ∝ c^(1−α): a temperature of 1/(1 − α)."""

    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({"alpha": 0.3}, {"alpha": 0.6}, {"alpha": 0.9})

    alpha: float = Field(0.5, gt=0, lt=1, description="how far the logits are drawn together")

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Normalised log-probabilities (n, k); −∞ stays −∞."""
        drawn: Array = log_softmax((1 - self.alpha) * log_c, axis=1)
        return drawn

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Scaling never reorders: the arg-max set stays among the maximisers."""
        return Claim(argmax=True)
