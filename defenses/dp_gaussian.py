"""Clip every row to a norm and add Gaussian noise, on the embeddings or gradients that the party sends.

A baseline of FedAdOb (§6). Rows and noise are whole numbers of steps of one grid
(:mod:`vflens.numerics.discrete_noise`), so that (ε, δ) holds in floating point too. Noise is drawn once per
exchange; an adversary may average over exchanges.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from vflens.defenses._clipping import clipped_to_grid
from vflens.defenses._row_noise import RowNoise
from vflens.numerics.discrete_noise import GAUSSIAN_STEP, fresh_words, gaussian, prepare_gaussian
from vflens.plugins.defense import Context
from vflens.types import Array, Claim


class DPGaussian(RowNoise):
    """h̃ = h·min(1, C/‖h‖₂) + n, n ~ N(0, (level·C)²I).

    It acts on embeddings and gradients, see :class:`vflens.defenses._row_noise.RowNoise`: C and level mean
    the same at every batch size.
    """

    clip: float = Field(1.0, ge=1e-100, le=1e100, description="C, the largest L2 norm of a row")
    level: float = Field(0.1, ge=1e-9, le=1e100, description="standard deviation of the noise, in units of C")
    delta: float = Field(1e-5, ge=1e-8, lt=1, description="δ of the differential privacy that is claimed")

    def model_post_init(self, context: Any) -> None:
        """Build the sampler's table before the run: it takes longer than a training step."""
        prepare_gaussian()

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Noise of standard deviation level·C; (ε, δ) per row and exchange where the classical bound covers
        it; μ of the ideal law.

        μ = 2C/(level·C) (Dong, Roth and Su, 2022, theorem 2.7). The sampler ends at 9.75 deviations, so no
        finite μ holds of it. It is within 2⁻⁴⁸ a number of the ideal law, in total variation:
        :class:`vflens.member.accountant.Accountant` takes that error off δ, and states no ε where it is too
        much.

        Replacing a row moves it by at most 2C: σ ≥ √(2 ln(1.25/δ))·2C/ε suffices if ε < 1 (Dwork and Roth,
        2014, theorem A.1). Otherwise ε stays unclaimed. The sampler's error, (1 + e)·2⁻⁴⁸ a number and below
        10⁻⁹ for rows of up to 65,536, is in δ: with the exact δ of Gaussian noise it makes up less than a
        third of the theorem's.
        """
        epsilon = math.sqrt(2 * math.log(1.25 / self.delta)) * 2 / self.level
        claim = Claim(noise_std=self.level * self.clip, mu=2 / self.level)
        return claim if epsilon >= 1 else replace(claim, epsilon=epsilon, delta=self.delta)

    def _noisy(self, rows: Array, ctx: Context) -> Array:
        step = GAUSSIAN_STEP * self.level * self.clip
        noise = ctx.draw(lambda rng, n: gaussian(fresh_words(rng, n, rows.shape[1])))
        noisy: Array = step * (clipped_to_grid(rows, self.clip, 2, step) + noise)
        return noisy
