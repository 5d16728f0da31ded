"""Where the pixels of a party's images stand among its columns."""

from collections.abc import Sequence

import numpy as np

from vflens.errors import ConfigError
from vflens.names import repeated
from vflens.types import Array, ColumnInfo
from vflens.words import counted


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
        f"{counted(len(columns), 'column is', many='columns are')} not the pixels of one rectangle, "
        f"{_misfit(columns)}: cut images by halves or tiles, or choose model.architecture = 'mlp'"
    )


def _misfit(columns: Sequence[ColumnInfo]) -> str:
    """What keeps ``columns`` from being one full rectangle, in words."""
    other = next((c.name for c in columns if c.pixel is None), None)
    if other is not None or not columns:
        return f"column {other!r} is no pixel" if columns else "there is none"
    pixels = [c.pixel for c in columns if c.pixel is not None]
    pixels = pixels if len({len(p) for p in pixels}) == 1 else [(*p, 0)[:3] for p in pixels]
    twice = repeated(pixels)
    if twice is not None:
        return f"pixel {twice} stands twice"
    in_order = sorted(pixels)
    sides = [(min(places), max(places) + 1) for places in zip(*pixels, strict=True)]
    missing = next(p for k in range(len(in_order) + 1) if (p := _place(k, sides)) not in in_order[k : k + 1])
    return f"pixel {missing} is missing"


def _place(number: int, sides: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """The pixel with this ``number``, line by line, of a rectangle whose ``sides`` begin and end there."""
    found: list[int] = []
    for begin, end in reversed(sides):
        number, inside = divmod(number, end - begin)
        found.insert(0, begin + inside)
    return tuple(found)
