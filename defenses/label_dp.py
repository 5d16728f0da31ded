"""Randomised response on the labels, drawn once per run, before anything is trained on them.

ε-label differential privacy for all that follows, however many exchanges (Ghazi et al., 2021, without prior).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from pydantic import Field

from vflens.numerics.discrete_noise import fresh_words
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class LabelDP(Defense):
    """A row keeps its label with probability e^ε/(e^ε + k − 1); else it gets one of the others, uniformly."""

    epsilon: float = Field(1.0, gt=0, le=700, description="ε of the label differential privacy")

    def on_labels(self, y: Array, ctx: Context) -> Array:
        """Rows of ``y`` (n, k), each rolled by as many classes as its label moved."""
        n, k = y.shape
        rng = ctx.stream()
        moves = np.where(fresh_words(rng, n)() < self._kept(k), 0, rng.integers(1, max(k, 2), n))
        moved: Array = np.take_along_axis(y, (np.arange(k) - moves[:, None]) % k, axis=1)
        return moved

    def _kept(self, k: int) -> int:
        """Of 2⁶⁴ words those that keep the label: rounded down, so that float64 adds nothing to ε."""
        others = (k - 1) * math.exp(-self.epsilon)
        return 2**64 - math.ceil(2**64 * others / (1 + others) * (1 + 2.0**-48))

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """ε for each row's label over the whole run: it is drawn once."""
        return Claim(epsilon=self.epsilon, delta=0.0)
