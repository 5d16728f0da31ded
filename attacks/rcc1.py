"""Relaxed Chebyshev centre 1: the centre of the solutions in the box by semidefinite relaxation (RVG Prop.
2).

Often equal to ``rcc2``, and then so certified. No theorem orders it: single rows can be worse than ``half``.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.box import box_estimate
from vflens.numerics.estimators.relaxed_chebyshev import relaxed_chebyshev
from vflens.plugins.attack import LinearAttack
from vflens.plugins.declared import Audited
from vflens.types import Array, Estimate, Moments


class RelaxedChebyshev1(LinearAttack):
    """x̂ = the x of max Tr S, S ⪰ 0, (W S Wᵀ)_ii ≤ x_i(1 − x_i), over A x = b', 0 ≤ x ≤ 1 (RVG (16), (31))."""

    audited: ClassVar[Audited | None] = Audited(rows=20)

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The relaxed Chebyshev centre; see :meth:`vflens.plugins.attack.LinearAttack.solve`.

        Rows with no solution in the box get the point of least ‖A x − b‖ nearest to ½·1. Extras per row:
        "residual" ‖A x̂ − b‖, "gap" of the dual, whose root bounds the distance to the exact RCC1, "radius"
        √p₁ but for the gap: no solution in the box is farther from x̂, "certified": it is RCC2's answer too.
        """
        found = relaxed_chebyshev(A, b)
        estimate = box_estimate(
            found.x,
            A,
            b,
            gap=found.gap,
            radius=found.radius,
            converged=found.converged,
        )
        extras = {**estimate.extras, "certified": found.certified}
        return Estimate("", estimate.rows, estimate.values, estimate.status, extras=extras)
