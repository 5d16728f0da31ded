"""Clip every row to a norm and add Gaussian noise, on the embeddings or gradients that the party sends.

A baseline of FedAdOb (§6). Noise is drawn once per exchange; an adversary may average over exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import Field

from defenses._clipping import clipped
from vfl.defense import Context, Defense
from vfl.types import Array, Claim


class DPGaussian(Defense):
    """h̃ = h·min(1, C/‖h‖₂) + n, n ~ N(0, (level·C)²I).

    At a passive party it acts on embeddings, at the active party on gradients (and on the logits that
    it sends in softmax regression). A gradient is that of the batch's mean loss: C is for one row of it.
    """

    clip: float = Field(1.0, gt=0, allow_inf_nan=False, description="C, the largest L2 norm of a row")
    level: float = Field(
        0.1, gt=0, allow_inf_nan=False, description="standard deviation of the noise, in units of C"
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="δ of the differential privacy that is claimed")

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """Clipped, noisy rows (n, w)."""
        return self._noisy(h, ctx)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Clipped, noisy rows (n, w)."""
        return self._noisy(g, ctx)

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Noise of standard deviation level·C; (ε, δ) per row and exchange where the classical bound covers it.

        Replacing a row moves it by at most 2C: σ ≥ √(2 ln(1.25/δ))·2C/ε suffices if ε < 1 (Dwork and Roth,
        2014, theorem A.1). Otherwise ε stays unclaimed.
        """
        epsilon = math.sqrt(2 * math.log(1.25 / self.delta)) * 2 / self.level
        if epsilon >= 1:
            return Claim(noise_std=self.level * self.clip)
        return Claim(noise_std=self.level * self.clip, epsilon=epsilon, delta=self.delta)

    def _noisy(self, rows: Array, ctx: Context) -> Array:
        noise = ctx.draw(lambda rng, n: rng.normal(0.0, self.level * self.clip, (n, rows.shape[1])))
        return clipped(rows, self.clip, 2) + noise
