"""8×8 handwritten digits, 1,797 rows, 64 pixels, 10 classes; bundled with scikit-learn.

Source: the test part of UCI 80, "Optical Recognition of Handwritten Digits". Pixels are counts 0..16.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from vflens.datasets._build import checked_table, integers
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table

COUNTS = dict(zip("0123456789", (178, 182, 177, 183, 181, 182, 181, 179, 174, 180), strict=True))


class Digits(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows; no split is given."""
        found = find_spec("sklearn")  # its import takes a second, its file milliseconds
        assert found is not None
        assert found.origin is not None
        numbers = np.loadtxt(Path(found.origin).parent / "datasets/data/digits.csv.gz", delimiter=",")
        columns = [integers(f"pixel_{r}_{c}", 0, 16, pixel=(r, c)) for r in range(8) for c in range(8)]
        return checked_table(
            "digits", columns, numbers[:, :-1], numbers[:, -1].astype(int).astype(str), COUNTS
        )
