"""Blind: zero for every feature (RVG §V).

Reads nothing. Its error is the second moment E x².
"""

from typing import ClassVar

import numpy as np

from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.types import Array, Estimate, Knowledge, Moments, Setting


class Zero(LinearAttack):
    """x̂ = 0."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset()
    settings: ClassVar[frozenset[Setting]] = frozenset(Setting)

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """All zeros; see :meth:`vflens.plugins.attack.LinearAttack.solve`."""
        return linear_estimate(np.zeros((len(b), A.shape[1])), A, b)
