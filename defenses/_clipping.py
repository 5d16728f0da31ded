"""Clips rows to a largest norm, which bounds the effect of one row on a release."""

import numpy as np

from vflens.types import Array


def clipped(rows: Array, largest: float, order: int) -> Array:
    """``rows`` (n, w), each scaled down to norm ``largest`` (``order`` 1 or 2) where it is longer."""
    norms = np.linalg.norm(rows, ord=order, axis=1, keepdims=True)
    shorter: Array = rows * (largest / np.maximum(norms, largest))
    return shorter


#: Share of the largest norm for rounding: of a norm over w numbers, a relative (w + 6)·2⁻⁵³, below 2⁻³⁶
#: for rows
#: up to 65,536 wide, and :data:`vflens.numerics.discrete_noise.LAPLACE_ERROR`.
_ROUNDING = 2.0**-32


def clipped_to_grid(rows: Array, largest: float, order: int, step: float) -> Array:
    """``rows`` (n, w) clipped to norm ``largest``, in whole steps: integers in float64 of norm <
    ``largest``/``step``.

    Cutting towards 0 makes no coordinate longer, so the norm stays below the bound after it. Two rows are
    then at most 2·``largest``/``step`` apart, by the triangle inequality: as far as without a grid.
    """
    steps: Array = np.trunc(clipped(rows, largest * (1 - _ROUNDING), order) / step)
    return steps
