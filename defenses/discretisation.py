"""Send gradients, or a client's update, in few levels only.

A baseline that FedAdOb names (§1), in the form of Zou et al. (2022), "discrete SGD", after Dryden et al.
(2016).
"""

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
        return self._nearest(g)

    def on_update(self, u: Array, ctx: Context) -> Array:
        """An update (1, m) of levels."""
        return self._nearest(u)

    def _nearest(self, rows: Array) -> Array:
        if not rows.size:
            return rows
        middle, spread = float(rows.mean()), float(rows.std())
        levels = middle + spread * np.linspace(-2.0, 2.0, self.levels)
        between = (levels[1:] + levels[:-1]) / 2
        nearest: Array = levels[np.searchsorted(between, rows)]
        return nearest

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """So many different numbers in an exchange at most: log₂ B bits for each number that leaves."""
        return Claim(levels=self.levels)
