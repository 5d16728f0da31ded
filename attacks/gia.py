"""Gradient inversion: projected Adam on the scores of a guess, the whole batch at once (RVG §VIII).

Every solution in the box is a minimiser: runs from two starts agree in their objective, not in their
estimate.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.linear.box import box_reach
from vflens.numerics.gradient_inversion import invert
from vflens.numerics.linear_system import LinearSystem
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.declared import Audited
from vflens.types import Array, Estimate, Moments, RowStatus


class GradientInversion(LinearAttack):
    """x̂ = argmin KL(ĉ‖c) over the box; on plain arrays, which hold no scores, argmin ‖A x − b'‖²."""

    exact: ClassVar[bool] = False
    rowwise: ClassVar[bool] = False  # rounding differs between batches, and Adam carries it to 1e-5
    audited: ClassVar[Audited | None] = None  # it steps towards what rcc2 solves

    start: Literal["zero", "half", "random"] = Field(
        "zero", description="0 (as first published), ½·1 (RVG §VIII-E), or a uniform draw for each row"
    )
    steps: int = Field(1000, ge=1, le=1_000_000, description="steps of Adam")
    learning_rate: float = Field(
        0.05, gt=0, allow_inf_nan=False, description="step size of Adam, in units of the box"
    )
    tolerance: float = Field(
        1e-3,
        gt=0,
        description="a row whose gap is a larger share of what the objective can reach, ‖A‖² or for KL at "
        "most ‖A‖, is not_converged",
    )

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """Minimises ‖A x − b‖², the squared differences of log-ratios; see
        :meth:`vflens.plugins.attack.LinearAttack.solve`.

        Extras per row: "residual" ‖A x̂ − b‖, "objective" that was minimised, "gap", 0 exactly where its
        slope vanishes inside the box, "radius": no point of the box is farther from x̂.
        """
        return self._invert(A, b, None, rng)

    def solve_system(
        self, system: LinearSystem, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """Minimises KL(ĉ‖c) over the classes of positive score."""
        return self._invert(system.A, system.b, system.log_c, rng)

    def _invert(self, A: Array, b: Array, log_c: Array | None, rng: np.random.Generator) -> Estimate:
        d = A.shape[1]
        start = (
            rng.random((len(b), d)) if self.start == "random" else np.full(d, 0.5 * (self.start == "half"))
        )
        found = invert(A, b, log_c, start, steps=self.steps, learning_rate=self.learning_rate)
        estimate = linear_estimate(found.x, A, b)
        estimate.status[found.gap > self.tolerance * found.size] = RowStatus.NOT_CONVERGED
        extras = {"objective": found.objective, "gap": found.gap, "radius": box_reach(found.x)}
        return Estimate("", estimate.rows, found.x, estimate.status, extras={**estimate.extras, **extras})
