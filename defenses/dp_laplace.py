"""Clip every row to an L1 norm and add Laplace noise, on the embeddings or gradients that the party sends.

Pure differential privacy of a row in one exchange, in floating point too: rows and noise are whole numbers of
steps of one grid (:mod:`vflens.numerics.discrete_noise`). Noise is drawn once per exchange.
"""

import math
from collections.abc import Mapping

from pydantic import Field

from vflens.defenses._clipping import clipped_to_grid
from vflens.defenses._row_noise import RowNoise
from vflens.numerics.discrete_noise import LAPLACE_STEP, fresh_words, laplace
from vflens.plugins.defense import Context
from vflens.types import Array, Claim


class DPLaplace(RowNoise):
    """h̃ = h·min(1, C/‖h‖₁) + n, n ~ Laplace(level·C) on every coordinate.

    It acts on embeddings and gradients, see :class:`vflens.defenses._row_noise.RowNoise`: C and level mean
    the same at every batch size.
    """

    clip: float = Field(1.0, ge=1e-100, le=1e100, description="C, the largest L1 norm of a row")
    level: float = Field(0.1, ge=1e-9, le=1e100, description="scale b of the noise, in units of C")

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """ε = 2/level, δ = 0 per row and exchange: replacing a row moves it by at most 2C in L1. Standard
        deviation √2·b.
        """
        return Claim(noise_std=math.sqrt(2) * self.level * self.clip, epsilon=2 / self.level, delta=0.0)

    def _noisy(self, rows: Array, ctx: Context) -> Array:
        step = LAPLACE_STEP * self.level * self.clip
        noise = ctx.draw(lambda rng, n: laplace(fresh_words(rng, n, rows.shape[1])))
        noisy: Array = step * (clipped_to_grid(rows, self.clip, 1, step) + noise)
        return noisy
