"""Blind: a uniform draw from [0, 1] for every feature (RVG §V, RG).

Reads nothing. For all data its expected error is that of ``half`` plus 1/12, the variance of the draw.
"""

from typing import ClassVar

import numpy as np

from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.types import Array, Estimate, Knowledge, Moments, Setting


class RandomGuess(LinearAttack):
    """x̂ ~ U[0, 1]^d, independent over rows and features."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset()
    settings: ClassVar[frozenset[Setting]] = frozenset(Setting)
    rowwise: ClassVar[bool] = False  # one stream for the batch: a row's draw depends on its place

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """Draws from ``rng``; see :meth:`vflens.plugins.attack.LinearAttack.solve`."""
        return linear_estimate(rng.random((len(b), A.shape[1])), A, b)
