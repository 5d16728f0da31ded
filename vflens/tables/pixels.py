"""Where the columns of an image stand in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vflens.types import Array, ColumnInfo


def pixel_places(columns: Sequence[ColumnInfo]) -> Array | None:
    """Row, column and channel of every column's pixel, int64 (d, 3), or None unless all are pixels.

    A grey pixel has channel 0.
    """
    pixels = [c.pixel for c in columns if c.pixel is not None]
    if not pixels or len(pixels) < len(columns):
        return None
    return np.array([(*pixel, 0)[:3] for pixel in pixels])
