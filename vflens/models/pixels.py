"""Where the pixels of a party's images stand among its columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vflens.errors import ConfigError
from vflens.types import Array, ColumnInfo


def image_grid(columns: Sequence[ColumnInfo]) -> Array:
    """The position of the column that holds each pixel, int64 (channels, height, width).

    A pixel is (row, column), or (row, column, channel).

    Raises:
        ConfigError: the columns are not the pixels of one full rectangle.
    """
    pixels = np.array([(*c.pixel, 0)[:3] for c in columns if c.pixel is not None]).reshape(-1, 3)
    if len(pixels) == len(columns) > 0:
        low = pixels.min(axis=0)
        shape = pixels.max(axis=0) - low + 1
        if shape.prod() == len(columns) == len(np.unique(pixels, axis=0)):
            grid = np.empty(shape, np.int64)
            grid[tuple((pixels - low).T)] = np.arange(len(columns))
            return np.ascontiguousarray(grid.transpose(2, 0, 1))
    raise ConfigError(
        f"a party's {len(columns)} columns are not the pixels of one rectangle: cut images by halves or "
        "tiles, or choose model.architecture = 'mlp'"
    )
