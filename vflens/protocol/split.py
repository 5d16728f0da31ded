"""Which rows train and which are predicted, where no file says so."""

import numpy as np

from vflens.types import Array


def drawn_split(rows: int, predict_share: float, rng: np.random.Generator) -> Array:
    """uint8 (rows,), 0 train and 1 predict: the nearest number to predict, at least one and not all."""
    split = np.zeros(rows, np.uint8)
    split[rng.permutation(rows)[: min(max(1, round(rows * predict_share)), rows - 1)]] = 1
    return split
