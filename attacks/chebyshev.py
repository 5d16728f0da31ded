"""The exact Chebyshev centre of the solutions in the box, where they have few vertices: a yardstick (RVG
(11)).

No estimate has a smaller worst-case error; its radius is that error. The cost grows exponentially with d −
rank A.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.linear.box import box_estimate, box_spread
from vflens.numerics.estimators.box import nearest_in_box
from vflens.numerics.estimators.chebyshev import candidates, chebyshev_center
from vflens.numerics.linear_system import null_basis
from vflens.plugins.attack import LinearAttack
from vflens.plugins.declared import Audited
from vflens.types import Array, Estimate, Moments


class ChebyshevCenter(LinearAttack):
    """x̂ = the centre of the smallest ball that holds {x : A x = b', 0 ≤ x ≤ 1}."""

    audited: ClassVar[Audited | None] = None  # it lists vertices; rcc1 and rcc2 stand for it

    most: int = Field(
        50_000, ge=1, description="the most candidate vertices; with more, rows are marked not_converged"
    )

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The Chebyshev centre; see :meth:`vflens.plugins.attack.LinearAttack.solve`.

        Rows with no solution in the box, and all rows where there are more than ``most`` candidates, get
        RCC2's answer. Extras per row: "residual" ‖A x̂ − b‖, "gap" of the squared radius, whose root bounds
        the distance to the exact centre, "radius" the Chebyshev radius.
        """
        nearest = nearest_in_box(A, b, np.full(A.shape[1], 0.5))
        W = null_basis(A)
        if candidates(*W.shape) > self.most:
            nothing = np.zeros(len(b), bool)
            return box_estimate(
                nearest.x, A, b, gap=nearest.gap, radius=box_spread(nearest.x), converged=nothing
            )
        ball = chebyshev_center(W, nearest.x)
        converged = nearest.converged & ball.found
        return box_estimate(ball.x, A, b, gap=ball.gap, radius=ball.radius, converged=converged)
