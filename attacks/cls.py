"""Constrained least squares: the point of the box with least residual that is nearest to a start (RVG §VIII).

The minimiser is not unique: what comes out depends on the start, so the start is a parameter.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from attacks._box import box_estimate, box_reach
from vfl.attack import LinearAttack
from vfl.numerics.box import nearest_in_box
from vfl.numerics.linear_system import nearest_solution
from vfl.types import Array, Estimate, Moments


class ConstrainedLeastSquares(LinearAttack):
    """x̂ = the point nearest to the start among argmin ‖A x − b'‖ over 0 ≤ x ≤ 1."""

    start: Literal["clamped_ls", "zero", "half", "random"] = Field(
        "clamped_ls", description="from where: clip(A⁺b', 0, 1), 0, ½·1, or a uniform draw for each row"
    )

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The minimiser nearest to the start; see :meth:`vfl.attack.LinearAttack.solve`.

        Extras per row: "residual" ‖A x̂ − b‖, "gap" of the dual (:class:`vfl.numerics.box.Nearest`), "radius": no
        point of the box is farther from x̂.
        """
        found = nearest_in_box(A, b, self._start(A, b, rng))
        return box_estimate(
            found.x, A, b, gap=found.gap, radius=box_reach(found.x), converged=found.converged
        )

    def _start(self, A: Array, b: Array, rng: np.random.Generator) -> Array:
        d = A.shape[1]
        if self.start == "clamped_ls":
            start: Array = np.clip(nearest_solution(A, b, np.zeros(d)), 0, 1)
            return start
        if self.start == "random":
            return rng.random((len(b), d))
        return np.full(d, {"zero": 0.0, "half": 0.5}[self.start])
