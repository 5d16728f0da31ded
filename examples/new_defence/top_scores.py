"""Release the largest scores of a row; its other classes share the rest equally."""

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Defense
from vflens.types import Claim


class TopScores(Defense):
    """Parameters are fields; a hook returns a new array. Noise of rows: ``ctx.draw(lambda rng, n: …)``."""

    keep: int = Field(1, ge=1, description="classes whose score is released")

    def on_scores(self, log_c, ctx):
        """Log-probabilities (n, k) as they leave the coordinator."""
        keep = min(self.keep, log_c.shape[1])
        least_kept = np.sort(log_c, axis=1)[:, -keep, None]
        others = log_c < least_kept
        rest = np.where(others, np.exp(log_c), 0.0).sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):  # log 0 = -inf is a legal score
            shared = np.log(rest / np.maximum(others.sum(axis=1, keepdims=True), 1))
        return np.where(others, shared, log_c)

    def claim(self, state):
        """What a test may hold it to."""
        return Claim(argmax=True)
