"""Pen-written digits, 10,992 rows, 16 coordinates, 10 classes. Needs VFLENS_DATA.

Source: UCI 81, ``pendigits.tra`` and ``pendigits.tes``, CC BY 4.0. Eight points (x, y) of the pen's path,
integers 0..100; the given split (other writers) is kept.
"""

from __future__ import annotations

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import checked_table, given_split, integers
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table

TRAIN_FILE = "pendigits.tra.gz", "4566018f665cf5a316549cfed9b9c289d198175c1f424419e2c876c83243002a"
PREDICT_FILE = "pendigits.tes.gz", "1f4837e6c3a064ff81082886c89645b4a1468646edf01e065a2012e54ba97e90"
COUNTS = dict(zip("0123456789", (1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055), strict=True))


class PenDigits(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows, the training rows first."""
        train, predict = (_local.numbers(_local.read(*file), ",") for file in (TRAIN_FILE, PREDICT_FILE))
        rows = np.concatenate([train, predict])
        columns = [integers(f"{axis}{t}", 0, 100) for t in range(1, 9) for axis in "xy"]
        classes = rows[:, -1].astype(np.int64).astype(str)
        return checked_table(
            "pendigits", columns, rows[:, :-1], classes, COUNTS, split=given_split(len(train), len(predict))
        )
