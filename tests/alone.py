"""Rows that share no bin with another, counted, and how many they are on average."""

from __future__ import annotations

import numpy as np

from vflens.types import Array


def alone_in_bins(measures: Array, ends: Array) -> Array:
    """The places of the ``measures`` (n,) that share no bin, of which ``ends`` (k,) are the lower ends."""
    held = np.searchsorted(ends, measures)
    return np.flatnonzero(np.bincount(held, minlength=len(ends) + 1)[held] == 1)


def expected_alone(rows: int, bins: int) -> float:
    """How many of ``rows`` are alone on average, where each falls into any of ``bins`` alike often: a row is,
    where each other one falls elsewhere.
    """
    return float(rows * (1 - 1 / bins) ** (rows - 1))
