"""Blind: one half for every feature, the centre of the box (RVG §V).

Reads nothing. No blind guess has a smaller worst case over [0, 1]: its error is at most 1/4.
"""

from typing import ClassVar

import numpy as np

from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.types import Array, Estimate, Knowledge, Moments, Setting


class Half(LinearAttack):
    """x̂ = ½·1."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset()
    settings: ClassVar[frozenset[Setting]] = frozenset(Setting)

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """All one half; see :meth:`vflens.plugins.attack.LinearAttack.solve`."""
        return linear_estimate(np.full((len(b), A.shape[1]), 0.5), A, b)
