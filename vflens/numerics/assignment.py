"""Who belongs to whom: rows in no known order, brought into that of others."""

from __future__ import annotations

import numpy as np

from vflens.array import Array


def in_order_of(reference: Array, batches: Array, labels: Array) -> Array:
    """``batches`` (s, n, d), each with the rows in the order in which they are nearest, in sum of squares, to
    the rows of ``reference`` (n, d). Rows of another label, int (n,), never change places.
    """
    ordered = batches.copy()
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        for batch in ordered:
            own = batch[places]
            batch[places] = own[assigned(((reference[places, None] - own[None]) ** 2).sum(axis=2))]
    return ordered


def assigned(costs: Array) -> Array:
    """The column int (n,) of each row of ``costs`` (n, n), each taken once, for which they sum to least."""
    from scipy.optimize import linear_sum_assignment  # slow to load, for few attacks

    found: Array = linear_sum_assignment(costs)[1]
    return found
