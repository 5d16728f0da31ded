"""Gaussian noise on the logits behind the released scores.

A baseline: it may change the predicted class, and averaging over independent draws undoes it, which is why a
row keeps its noise.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field
from scipy.special import log_softmax

from vfl.defense import Context, Defense
from vfl.types import Array, Claim


class GaussianScores(Defense):
    """c̃ = softmax(z + n), n ~ N(0, σ²I) over rows and classes (RVG §VII-B).

    Log-probabilities are logits up to a constant per row, which softmax removes: noise on either is the
    same. −∞ stays −∞.
    """

    sigma: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="standard deviation of the noise, in logits"
    )

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Noisy, normalised log-probabilities (n, k)."""
        noise = ctx.draw(lambda rng, n: rng.normal(0.0, self.sigma, (n, log_c.shape[1])))
        noisy: Array = log_softmax(log_c + noise, axis=1)
        return noisy

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Noise of standard deviation σ on each logit; the arg-max may move."""
        return Claim(noise_std=self.sigma)
