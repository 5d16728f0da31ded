"""Clipping rows to a largest norm: what bounds how much one row can change what is released."""

from __future__ import annotations

import numpy as np

from vfl.types import Array


def clipped(rows: Array, largest: float, order: int) -> Array:
    """``rows`` (n, w), each scaled down to norm ``largest`` (``order`` 1 or 2) where it is longer."""
    norms = np.linalg.norm(rows, ord=order, axis=1, keepdims=True)
    shorter: Array = rows * np.minimum(1.0, largest / np.maximum(norms, np.finfo(float).tiny))
    return shorter
