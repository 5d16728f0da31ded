"""Gaussian noise on the logits behind the released scores.

A baseline: it may change the predicted class, and averaging over independent draws undoes it, which is why a
row keeps its noise. No ε is claimed; the logits are rounded to a grid all the same, so that the last bits of
a score do not tell them (:mod:`vflens.numerics.discrete_noise`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import log_softmax

from vflens.numerics.discrete_noise import GAUSSIAN_STEP, fresh_words, gaussian
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class GaussianScores(Defense):
    """c̃ = softmax(z + n), n ~ N(0, σ²I) over rows and classes (RVG §VII-B).

    Log-probabilities are logits up to a constant per row, which softmax removes: noise on either is the
    same. −∞ stays −∞.
    """

    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({"sigma": 0.3}, {"sigma": 1.0}, {"sigma": 3.0})

    sigma: float = Field(1.0, ge=1e-9, le=1e100, description="standard deviation of the noise, in logits")

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Noisy, normalised log-probabilities (n, k)."""
        step = GAUSSIAN_STEP * self.sigma
        noise = ctx.draw(lambda rng, n: gaussian(fresh_words(rng, n, log_c.shape[1])))
        noisy: Array = log_softmax(step * (np.rint(log_c / step) + noise), axis=1)
        return noisy

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Noise of standard deviation σ on each logit; the arg-max may move."""
        return Claim(noise_std=self.sigma)
