"""Clip every row to an L1 norm and add Laplace noise, on the embeddings or gradients that the party sends.

Pure differential privacy of a row in one exchange. Noise is drawn once per exchange.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import Field

from defenses._clipping import clipped
from vfl.defense import Context, Defense
from vfl.types import Array, Claim


class DPLaplace(Defense):
    """h̃ = h·min(1, C/‖h‖₁) + n, n ~ Laplace(level·C) on every coordinate.

    At a passive party it acts on embeddings, at the active party on gradients (and on the logits that
    it sends in softmax regression).
    """

    clip: float = Field(1.0, gt=0, allow_inf_nan=False, description="C, the largest L1 norm of a row")
    level: float = Field(0.1, gt=0, allow_inf_nan=False, description="scale b of the noise, in units of C")

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """Clipped, noisy rows (n, w)."""
        return self._noisy(h, ctx)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Clipped, noisy rows (n, w)."""
        return self._noisy(g, ctx)

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """ε = 2/level per row and exchange: replacing a row moves it by at most 2C in L1. Standard deviation √2·b."""
        return Claim(noise_std=math.sqrt(2) * self.level * self.clip, epsilon=2 / self.level, delta=0.0)

    def _noisy(self, rows: Array, ctx: Context) -> Array:
        noise = ctx.draw(lambda rng, n: rng.laplace(0.0, self.level * self.clip, (n, rows.shape[1])))
        return clipped(rows, self.clip, 1) + noise
