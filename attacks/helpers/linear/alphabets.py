"""What values a column takes, as attacks know them."""

from __future__ import annotations

import numpy as np

from vflens.types import ColumnInfo


def scaled_alphabet(column: ColumnInfo) -> tuple[float, ...] | None:
    """The alphabet in [0, 1]: by declared bounds, else its own extremes, as training rows would show them."""
    if column.alphabet is None:
        return None
    letters = np.array(column.alphabet)
    low = letters.min() if column.low is None else column.low
    high = letters.max() if column.high is None else column.high
    scaled = np.clip(letters - low, 0, high - low) / ((high - low) or 1.0)
    return tuple(np.unique(scaled).tolist())
