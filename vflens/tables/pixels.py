"""The columns of an image, and where they stand in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from vflens.types import MAX_PIXEL, Array, ColumnInfo, Pixel

_LARGEST_BOX = 1 << 16  # places that a picture of any columns may have
_MOST_EMPTY = 64  # places of a larger one for each column


def pixel_places(columns: Sequence[ColumnInfo]) -> Array | None:
    """Row, column and channel of every column's pixel, int64 (d, 3), or None unless all are pixels.

    A grey pixel has channel 0.
    """
    pixels = [c.pixel for c in columns if c.pixel is not None]
    if not pixels or len(pixels) < len(columns):
        return None
    return np.array([(*pixel, 0)[:3] for pixel in pixels])


def holds_images(columns: Sequence[ColumnInfo]) -> bool:
    """Whether all columns are pixels of 0 to 255, at least one."""
    return bool(columns) and all(
        c.pixel is not None and (c.low, c.high, c.alphabet) == (0.0, 255.0, None) for c in columns
    )


def too_wide(columns: Sequence[ColumnInfo]) -> str:
    """A sentence where the columns are pixels so far apart that a picture of their box takes far more memory
    than they do, or pixels without a place in any picture; "" else.
    """
    found = [(*c.pixel, 0)[:3] for c in columns if c.pixel is not None]
    if not found or len(found) < len(columns):
        return ""
    if odd := [place for place in found if not 0 <= min(place) <= max(place) <= MAX_PIXEL]:
        return f"pixel {odd[0]} is none: number them from 0 to {MAX_PIXEL}"
    sides = [max(places) - min(places) + 1 for places in zip(*found, strict=True)]
    if math.prod(sides) <= max(_LARGEST_BOX, _MOST_EMPTY * len(found)):
        return ""
    box = " x ".join(map(str, sides))
    return f"{len(found)} pixels lie in a box of {box}: number them without large gaps"


def image_columns(height: int, width: int, channels: int = 0) -> list[ColumnInfo]:
    """The pixels 0 to 255 of an image (height, width, channels), row by row; 0 channels: of a grey one."""
    depth: list[tuple[int, ...]] = [(k,) for k in range(channels)] or [()]
    places = [cast("Pixel", (r, c, *k)) for r in range(height) for c in range(width) for k in depth]
    return [ColumnInfo("_".join(map(str, ("pixel", *p))), 0.0, 255.0, pixel=p) for p in places]
