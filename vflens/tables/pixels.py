"""The columns of an image, and where they stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from vflens.types import Array, ColumnInfo, Pixel


def pixel_places(columns: Sequence[ColumnInfo]) -> Array | None:
    """Row, column and channel of every column's pixel, int64 (d, 3), or None unless all are pixels.

    A grey pixel has channel 0.
    """
    pixels = [c.pixel for c in columns if c.pixel is not None]
    if not pixels or len(pixels) < len(columns):
        return None
    return np.array([(*pixel, 0)[:3] for pixel in pixels])


def image_columns(height: int, width: int, channels: int = 0) -> list[ColumnInfo]:
    """The pixels 0 to 255 of an image (height, width, channels), row by row; 0 channels: of a grey one."""
    depth: list[tuple[int, ...]] = [(k,) for k in range(channels)] or [()]
    places = [cast("Pixel", (r, c, *k)) for r in range(height) for c in range(width) for k in depth]
    return [ColumnInfo("_".join(map(str, ("pixel", *p))), 0.0, 255.0, pixel=p) for p in places]
