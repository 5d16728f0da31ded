"""Wine recognition, 178 rows, 13 features, 3 classes; bundled with scikit-learn.

Source: UCI 109. Features are chemical measurements; no bounds are declared.
"""

from __future__ import annotations

from vflens.datasets._build import checked_table
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table
from vflens.types import ColumnInfo

COUNTS = {"class_0": 59, "class_1": 71, "class_2": 48}


class Wine(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows; no split is given."""
        from sklearn.datasets import load_wine

        bunch = load_wine()
        columns = [ColumnInfo(str(name)) for name in bunch.feature_names]
        return checked_table("wine", columns, bunch.data, bunch.target_names[bunch.target], COUNTS)
