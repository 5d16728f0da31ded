"""GradPerturb: noise along the gradients that a row would have had under each class (Yang et al., 2022).

g̃ = g_y + Σ_c u_c g_c, u_c ~ Lap(2/ε). Cross-entropy is linear in its labels: g̃ is the gradient under the
labels y + u. So the noise is put on the labels, and everything that follows from a batch has it
(docs/adr/0025-noise-on-labels.md).
"""

import math
from collections.abc import Mapping

import numpy as np
from pydantic import Field

from vflens.numerics.discrete_noise import STEPS, fresh_words, laplace
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim

_ROUNDING = 2.0**-32  # more than the sampler's LAPLACE_ERROR and the rounding of the quotient


class GradPerturb(Defense):
    """Soft labels e_y + u, u_c ~ Lap(2/ε), drawn anew for every row in every training exchange.

    The gradient that leaves and the party's own step follow from them: k backward passes would give the same
    gradient, and the party would learn the true labels.
    """

    epsilon: float = Field(
        1.0, ge=0.01, le=700, description="ε of the label differential privacy of one exchange"
    )

    def on_batch_labels(self, y: Array, ctx: Context) -> Array:
        """Noisy labels (n, k)."""
        noise = laplace(fresh_words(ctx.stream(), *y.shape))
        noisy: Array = (np.trunc(self._steps * y) + noise) / self._steps
        return noisy

    @property
    def _steps(self) -> int:
        """K, the steps of the grid in a label of 1.

        Another label moves 2K steps, and the noise's density halves in 4096: ε = 2K ln 2/4096, rounded down.
        """
        return math.floor(self.epsilon * STEPS / (2 * math.log(2)) * (1 - _ROUNDING))

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """ε, δ = 0 for a row's label in one exchange, of all that follows from its batch."""
        scale = STEPS / math.log(2) / self._steps
        return Claim(noise_std=math.sqrt(2) * scale, epsilon=self.epsilon, delta=0.0)
