"""half*: the solution of the equations nearest to the centre of the box (RVG §V).

With exact scores no row is estimated worse than by ``half`` (RVG Theorem 1); it may leave the box.
"""

from typing import ClassVar

import numpy as np

from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.declared import Stated
from vflens.types import Array, Estimate, Moments


class HalfStar(LinearAttack):
    """x̂ = A⁺b' + ½(I − P)1, P = A⁺A: the solution nearest to ½·1."""

    stated: ClassVar[Stated | None] = Stated(center=0.5, no_worse_than=("half",))

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The solution nearest to ½·1; see :meth:`vflens.plugins.attack.LinearAttack.solve`."""
        return linear_estimate(nearest_solution(A, b, np.full(A.shape[1], 0.5)), A, b)
