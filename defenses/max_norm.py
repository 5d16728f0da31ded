"""Stretch every row of the gradient at random, so that its expected length is that of the longest row.

Against norm scoring (Li et al., 2022, "max norm"): norms then say little about labels, directions still do.
"""

from typing import ClassVar

import numpy as np

from vflens.plugins.defense import Context, Defense
from vflens.types import Array


class MaxNorm(Defense):
    """g̃ = g(1 + σξ), one ξ ~ N(0, 1) per row, σ² = max_j ‖g_j‖²/‖g‖² − 1, so that E‖g̃‖² is the largest.

    A row of zeros stays zero.
    """

    unclaimed: ClassVar[str] = "one draw stretches a whole row: directions of gradients stay exact"
    mixes_rows: ClassVar[bool] = True

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Stretched rows (n, w)."""
        squares = (g * g).sum(axis=1, keepdims=True)
        ratio = squares.max(initial=0.0) / np.where(squares > 0, squares, 1.0)
        sigma = np.sqrt(np.maximum(np.where(squares > 0, ratio, 1.0) - 1, 0.0))
        stretched: Array = g * (1 + sigma * ctx.stream().standard_normal(squares.shape))
        return stretched
