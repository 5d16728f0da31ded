"""Constrained least squares: the point of the box with least residual that is nearest to a start (RVG §VIII).

The minimiser is not unique: it depends on the start, so the start is a parameter.
"""

from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field

from vflens.attacks.helpers.linear.box import box_estimate, box_reach
from vflens.errors import ConfigError
from vflens.numerics.estimators.box import nearest_in_box
from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack
from vflens.plugins.declared import Audited
from vflens.types import Array, Estimate, Moments
from vflens.words import counted

Named = Literal["clamped_ls", "zero", "half", "random"]


def _name_or_point(value: Any) -> str | tuple[float, ...]:
    """``value`` if it is a name or a point, as a tuple: a setting is frozen."""
    if isinstance(value, str) and value in get_args(Named):
        return value
    try:
        point = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        point = np.zeros(())
    if isinstance(value, str) or point.ndim != 1 or not ((point >= 0) & (point <= 1)).all():
        raise ValueError(
            f"give one of {', '.join(get_args(Named))}, or a point of the box: a number from 0 to 1 for each "
            "column"
        )
    return tuple(point.tolist())


class ConstrainedLeastSquares(LinearAttack):
    """x̂ = the point nearest to the start among argmin ‖A x − b'‖ over 0 ≤ x ≤ 1."""

    audited: ClassVar[Audited | None] = None  # rcc2 stands for it

    start: Annotated[Named | tuple[float, ...], BeforeValidator(_name_or_point)] = Field(
        "clamped_ls",
        description="from where: clip(A⁺b', 0, 1), 0, ½·1, a uniform draw for each row, or a point of the "
        "box: a number for each unknown column",
    )

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The minimiser nearest to the start; see :meth:`vflens.plugins.attack.LinearAttack.solve`.

        Raises:
            ConfigError: a point that has not one number for each column of ``A``.

        Extras per row: "residual" ‖A x̂ − b‖, "gap" of the dual
        (:class:`vflens.numerics.estimators.box.Nearest`), "radius": no point of the box is farther from x̂.
        """
        found = nearest_in_box(A, b, self._start(A, b, rng))
        return box_estimate(
            found.x, A, b, gap=found.gap, radius=box_reach(found.x), converged=found.converged
        )

    def _start(self, A: Array, b: Array, rng: np.random.Generator) -> Array:
        d = A.shape[1]
        if isinstance(self.start, tuple):
            return _point(self.start, d)
        if self.start == "clamped_ls":
            start: Array = np.clip(nearest_solution(A, b, np.zeros(d)), 0, 1)
            return start
        if self.start == "random":
            return rng.random((len(b), d))
        return np.full(d, {"zero": 0.0, "half": 0.5}[self.start])


def _point(start: tuple[float, ...], d: int) -> Array:
    if len(start) != d:
        raise ConfigError(
            f"cls: start has {counted(len(start), 'number')} and there are {counted(d, 'unknown column')}: "
            "give one for each"
        )
    return np.array(start)
