"""What a client does to its update before it leaves: send its largest numbers only.

An update holds arrays by name, which are treated as one long vector.
"""

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from vflens.array import Array

Update: TypeAlias = Mapping[str, Array]


def largest_numbers(rows: Array, kept: float) -> Array:
    """In every row of w numbers (n, w) the ⌈kept·w⌉ of largest magnitude, the others 0; of equal magnitudes
    the first stay.
    """
    count = math.ceil(kept * rows.shape[1])
    largest = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :count]
    sparse = np.zeros_like(rows)
    np.put_along_axis(sparse, largest, np.take_along_axis(rows, largest, axis=1), axis=1)
    return sparse


def sparse_update(
    update: Update, kept: float, left: Update | None = None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The :func:`largest_numbers` of ``update`` and what is left of it; both sum to the update.

    Without error feedback the rest is dropped. With it (Stich et al., 2018, algorithm 1) the rest is ``left``
    of the next round, where it is added before the largest are chosen: over all rounds no number is lost.
    """
    whole = {name: part if left is None else part + left[name] for name, part in update.items()}
    flat = np.concatenate([part.ravel() for part in whole.values()])
    ends = np.cumsum([part.size for part in whole.values()])[:-1]
    chosen = np.split(largest_numbers(flat[None], kept)[0], ends)
    sent = {name: c.reshape(part.shape) for (name, part), c in zip(whole.items(), chosen, strict=True)}
    return sent, {name: part - sent[name] for name, part in whole.items()}
