"""A first layer that sorts rows into bins, and what its gradient shows of each bin.

Fowl et al., 2022, §4: unit j of a layer before a ReLU is above 0 at the rows whose measure h(x) is above c_j,
with the same weights in all units. Where the layer behind it weighs all units alike, a row has one gradient g
in all units that are above 0. What unit j has and unit j + 1 has not is of the rows between both.
"""

from statistics import NormalDist

import numpy as np

from vflens.array import Array


def equal_bins(mean: float, deviation: float, bins: int) -> Array:
    """The lower ends c (bins,) of bins in which a normal measure above 0 falls alike often, ascending.

    Args:
        mean: the measure's.
        deviation: its standard deviation, > 0.
        bins: how many.
    """
    law = NormalDist(mean, deviation)
    ends = np.array([law.inv_cdf(j / bins) for j in range(1, bins)])
    lowest = min(0.0, *ends) if bins > 1 else 0.0
    return np.concatenate([[lowest - deviation], ends])


def bin_sums(weight: Array, bias: Array) -> tuple[Array, Array]:
    """Σ g x (m, d) and Σ g (m,) over the rows of each bin, the last of which has no upper end.

    Args:
        weight: ∇W (m, d) of units in ascending order of their bins.
        bias: ∇b (m,).
    """
    return -np.diff(weight, axis=0, append=0.0), -np.diff(bias, append=0.0)


def bin_means(weight: Array, bias: Array, *, tolerance: float = 1e-6) -> tuple[Array, Array]:
    """What each bin with rows shows, Σ g x / Σ g (r, d), and its Σ g (r,): one row, or of several a mean.

    Weights g of both signs may put a mean outside the box [0, 1]. Those are left out.

    Args:
        weight: see :func:`bin_sums`.
        bias: see there.
        tolerance: of |Σ g|, relative to the largest, below which a bin is empty, and of the box.
    """
    rows, sizes = bin_sums(weight, bias)
    filled = np.abs(sizes) > tolerance * np.abs(sizes).max(initial=0.0)
    shown, sizes = rows[filled] / sizes[filled, None], sizes[filled]
    inside = ((shown >= -tolerance) & (shown <= 1 + tolerance)).all(axis=1)
    return shown[inside], sizes[inside]
