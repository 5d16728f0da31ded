"""Send the mean gradient of a group to each of its rows."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class Averaging(Defense):
    """Consecutive rows of a batch form groups of ``rows``; each row's gradient becomes its group's mean.

    A remainder joins the last group, so a batch of fewer than 2·``rows`` rows is one group. The sum over the
    batch stays.
    """

    mixes_rows: ClassVar[bool] = True

    rows: int = Field(4, ge=2, le=2**31 - 1, description="the least number of rows in a group")

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Rows (n, w), alike within a group."""
        n = len(g)
        if n == 0:
            return g
        group = np.minimum(np.arange(n) // self.rows, max(n // self.rows - 1, 0))
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        means = np.add.reduceat(g, starts, axis=0) / np.bincount(group)[:, None]
        averaged: Array = means[group]
        return averaged

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Every row of a batch of at least ``rows`` shares its gradient with as many, itself counted."""
        return Claim(group_rows=self.rows)
