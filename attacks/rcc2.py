"""Relaxed Chebyshev centre 2: of the solutions in the box the one nearest to its centre (RVG Prop. 3).

With exact scores no row is estimated worse than by ``half_star`` (RVG Theorem 1).
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.box import box_estimate, box_spread
from vflens.numerics.estimators.box import nearest_in_box
from vflens.plugins.attack import LinearAttack
from vflens.plugins.declared import Stated
from vflens.types import Array, Estimate, Moments


class RelaxedChebyshev2(LinearAttack):
    """x̂ = argmax 1ᵀx − ‖x‖² over A x = b', 0 ≤ x ≤ 1 (RVG (32), (33), Remark 2)."""

    stated: ClassVar[Stated | None] = Stated(no_worse_than=("half_star",))

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The solution in the box nearest to ½·1; see :meth:`vflens.plugins.attack.LinearAttack.solve`.

        Rows with no solution in the box get the point of least ‖A x − b‖ nearest to ½·1. Extras per row:
        "residual" ‖A x̂ − b‖, "gap" of the dual (:class:`vflens.numerics.estimators.box.Nearest`), "radius"
        √p₂: no solution in the box is farther from x̂.
        """
        found = nearest_in_box(A, b, np.full(A.shape[1], 0.5))
        return box_estimate(
            found.x, A, b, gap=found.gap, radius=box_spread(found.x), converged=found.converged
        )
