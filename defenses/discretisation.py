"""Send gradients in few levels only.

A baseline that FedAdOb names (§1), in the form of Zou et al. (2022), "discrete SGD", after Dryden et al.
(2016).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class Discretisation(Defense):
    """Each number becomes the nearest of ``levels`` evenly spaced ones from mean − 2 std to mean + 2 std.

    Mean and standard deviation are those of all numbers of the exchange. Numbers beyond the ends become the
    ends; of two equally near levels the lower counts.
    """

    mixes_rows: ClassVar[bool] = True

    levels: int = Field(12, ge=2, le=4096, description="B, the different numbers that may leave")

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Rows (n, w) of levels."""
        if not g.size:
            return g
        middle, spread = float(g.mean()), float(g.std())
        levels = middle + spread * np.linspace(-2.0, 2.0, self.levels)
        between = (levels[1:] + levels[:-1]) / 2
        nearest: Array = levels[np.searchsorted(between, g)]
        return nearest

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """So many different numbers in an exchange at most: log₂ B bits for each number that leaves."""
        return Claim(levels=self.levels)
