"""Least squares, the equation-solving attack (ESA): the minimum-norm solution (RVG §V).

Exact when the equations determine x (d ≤ rank A); otherwise it may leave the box.
"""

from typing import ClassVar

import numpy as np

from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.declared import Stated
from vflens.types import Array, Estimate, Moments


class LeastSquares(LinearAttack):
    """x̂ = A⁺b', the solution nearest to 0."""

    stated: ClassVar[Stated | None] = Stated(center=0.0)

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The solution nearest to 0; see :meth:`vflens.plugins.attack.LinearAttack.solve`."""
        return linear_estimate(nearest_solution(A, b, np.zeros(A.shape[1])), A, b)
