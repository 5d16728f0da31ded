"""Breast Cancer Wisconsin (Diagnostic), 569 rows, 30 features, 2 classes; bundled with scikit-learn.

Source: UCI 17. Features describe cell nuclei; no bounds are declared.
"""

from __future__ import annotations

from vflens.datasets._build import checked_table
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table
from vflens.types import ColumnInfo

COUNTS = {"malignant": 212, "benign": 357}


class BreastCancer(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows; no split is given."""
        from sklearn.datasets import load_breast_cancer

        bunch = load_breast_cancer()
        columns = [ColumnInfo(str(name)) for name in bunch.feature_names]
        return checked_table("breast_cancer", columns, bunch.data, bunch.target_names[bunch.target], COUNTS)
