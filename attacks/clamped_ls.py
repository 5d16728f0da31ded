"""Least squares, clipped into the box [0, 1] (RVG §VIII).

Never worse than ``ls`` on data in the box; the clipped point need not solve the equations any more.
"""

from typing import ClassVar

import numpy as np

from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.declared import Audited, Stated
from vflens.types import Array, Estimate, Moments


class ClampedLeastSquares(LinearAttack):
    """x̂ = clip(A⁺b', 0, 1)."""

    audited: ClassVar[Audited | None] = None  # ls and rcc2 stand for it
    stated: ClassVar[Stated | None] = Stated(center=0.0, clipped=True)

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The solution nearest to 0, clipped; see :meth:`vflens.plugins.attack.LinearAttack.solve`."""
        return linear_estimate(np.clip(nearest_solution(A, b, np.zeros(A.shape[1])), 0, 1), A, b)
