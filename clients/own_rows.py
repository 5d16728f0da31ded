"""A data party's rows for a run: its table's, in the run's order, scaled and defended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vflens.array import ScaledColumns
from vflens.tables.scaling import Scaler
from vflens.types import Array

_MOVED_BYTES = 1 << 22  # of columns that are moved together


class Rows(NamedTuple):
    """``truth`` (N, d) scaled to [0, 1], of which ``clipped`` values lay outside their bounds; ``inputs`` the
    same after defences, the same object without any.
    """

    truth: ScaledColumns
    inputs: ScaledColumns
    clipped: int


def moved_in_place(features: Array, order: Array, scaler: Scaler) -> tuple[ScaledColumns, int]:
    """The rows ``order`` of ``features``, moved in place, and scaled there unless they are the pixels of
    images; and the number of clipped values.

    A second copy would double what the party holds.
    """
    truth = features[: len(order)]
    at_once = max(1, _MOVED_BYTES // max(1, truth[:, :1].nbytes))
    for j in range(0, truth.shape[1], at_once):
        truth[:, j : j + at_once] = features[order, j : j + at_once]
    if features.dtype == np.uint8:
        return ScaledColumns(truth), 0
    clipped = scaler.transform_in_place(truth)
    return ScaledColumns(truth, scaler.high - scaler.low), clipped
