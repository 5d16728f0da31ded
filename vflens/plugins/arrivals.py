"""Values by row from messages: the last one of each row counts."""

from collections.abc import Iterable

import numpy as np

from vflens.types import Array


def latest(found: Iterable[tuple[Array, Array]], rows: Array) -> tuple[Array, Array]:
    """The last value (N, w) of each of ``rows`` int32 (N,), and whether there is one, bool (N,).

    ``found`` gives rows (n,) and values (n, w) in order of arrival; memory holds one message at a time.
    """
    distinct, place = np.unique(rows, return_inverse=True)
    index = np.full(distinct.max(initial=-1) + 2, -1)  # the last entry takes all other rows
    index[distinct] = np.arange(len(distinct))
    values, seen = np.zeros((len(distinct), 0)), np.zeros(len(distinct), bool)
    for arrived, new in found:
        if not values.size:
            values = np.zeros((len(distinct), new.shape[1]))
        at = index[np.minimum(arrived, len(index) - 1)]
        asked = at >= 0
        values[at[asked]] = new[asked]
        seen[at[asked]] = True
    return values[place], seen[place]
