"""Statlog Landsat satellite, 6,435 rows, 36 intensities, 6 classes of soil. Needs VFLENS_DATA.

Source: UCI 146, ``sat.trn`` and ``sat.tst``, CC BY 4.0. Nine neighbouring pixels in four spectral
bands of 0..255; the given split is kept. Class 6 of the file ("mixture") does not occur.
"""

from __future__ import annotations

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import checked_table, given_split
from vflens.plugins.dataset import Dataset
from vflens.tables.recipes import scaled_apart
from vflens.tables.table import Table
from vflens.types import ColumnInfo

TRAIN_FILE = "sat.trn.gz", "1f0fbb7702e08d8445c3b2ff907d63fb32a745a227f8bad959e862cec90f132c"
PREDICT_FILE = "sat.tst.gz", "22f0b2a99c940c78049e3d506f8596531f00a57a31e088003893150b6a57d7d9"
COUNTS = {
    "red soil": 1533,
    "cotton crop": 703,
    "grey soil": 1358,
    "damp grey soil": 626,
    "vegetation stubble": 707,
    "very damp grey soil": 1508,
}


class Satellite(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows, the training rows first."""
        train, predict = (_local.numbers(_local.read(*file)) for file in (TRAIN_FILE, PREDICT_FILE))
        rows = np.concatenate([train, predict])
        columns = [ColumnInfo(f"pixel{p}_band{b}", 0.0, 255.0) for p in range(1, 10) for b in range(1, 5)]
        names = np.array([*COUNTS])[np.searchsorted([1, 2, 3, 4, 5, 7], rows[:, -1])]
        split = given_split(len(train), len(predict))
        return checked_table("satellite", columns, rows[:, :-1], names, COUNTS, split=split)

    def as_coded(self) -> Table:
        """The given split, each part scaled by its own extremes."""
        return scaled_apart(self.load())
