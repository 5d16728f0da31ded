"""Likeness of images to their reconstructions, beside the mean squared error: PSNR and SSIM.

Values are in [0, 1], so the range of both measures is 1.
"""

from collections.abc import Sequence

import numpy as np

from vflens.errors import ConfigError
from vflens.models.pixels import image_grid
from vflens.types import Array, ColumnInfo

_WIDEST, _SIGMA = 11, 1.5
_C1, _C2 = 0.01**2, 0.03**2
_AT_ONCE = 512  # images: memory has a bound


def grid_of(columns: Sequence[ColumnInfo]) -> Array | None:
    """The column of each pixel, int64 (channels, height, width); None unless the columns are one full
    rectangle, at least 3 pixels high and wide.
    """
    try:
        grid = image_grid(columns)
    except ConfigError:
        return None
    return grid if min(grid.shape[1:]) >= 3 else None


def psnr(mse: Array) -> Array:
    """Peak signal-to-noise ratio in dB of mean squared errors, of any shape; infinite if exact."""
    with np.errstate(divide="ignore"):
        ratio: Array = -10 * np.log10(mse)
    return ratio


def ssim(x: Array, y: Array, grid: Array) -> Array:
    """Structural similarity of each row of ``x`` (n, d) to that of ``y``, (n,) in [−1, 1]; 1 is equal.

    Wang, Bovik, Sheikh, Simoncelli (2004), eq. 13, the mean over all windows inside the image and over its
    channels. Windows are Gaussian, σ = 1.5, 11 pixels wide, in smaller images as wide as the largest odd
    number that fits their shorter side; K₁ = .01, K₂ = .03.
    """
    width = min(_WIDEST, (min(grid.shape[1:]) - 1) // 2 * 2 + 1)
    down, across = (_windows(side, width) for side in grid.shape[1:])
    parts = [slice(i, i + _AT_ONCE) for i in range(0, len(x), _AT_ONCE)]
    return np.concatenate([_ssim(x[p][:, grid], y[p][:, grid], down, across.T) for p in parts])


def _ssim(x: Array, y: Array, down: Array, across: Array) -> Array:
    """See :func:`ssim`, of images (n, channels, height, width)."""

    def mean(values: Array) -> Array:
        return down @ values @ across

    mx, my = mean(x), mean(y)
    variances, covariance = mean(x * x) - mx**2 + mean(y * y) - my**2, mean(x * y) - mx * my
    likeness = (2 * mx * my + _C1) * (2 * covariance + _C2) / ((mx**2 + my**2 + _C1) * (variances + _C2))
    each: Array = likeness.mean(axis=(1, 2, 3))
    return each


def _windows(side: int, width: int) -> Array:
    """The weights (side − width + 1, side) of each place of a window along one side."""
    weights = np.exp(-(((np.arange(width) - width // 2) / _SIGMA) ** 2) / 2)
    places = np.zeros((side - width + 1, side))
    for i, row in enumerate(places):
        row[i : i + width] = weights / weights.sum()
    return places
