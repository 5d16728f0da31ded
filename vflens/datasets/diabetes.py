"""Diabetes, 442 rows, 10 features, a number as label; bundled with scikit-learn.

Source: Efron et al., Least Angle Regression (2004). The label measures the progression of the disease one
year after the features, from 25 to 346. No bounds of features are declared.
"""

from __future__ import annotations

from vflens.datasets._build import numeric_table
from vflens.errors import DataError
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table
from vflens.types import ColumnInfo

_SHAPE, _SUM = (442, 10), 67243.0


class Diabetes(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows, unscaled; no split is given."""
        from sklearn.datasets import load_diabetes

        bunch = load_diabetes(scaled=False)
        if bunch.data.shape != _SHAPE or bunch.target.sum() != _SUM:
            raise DataError("data set 'diabetes' has another shape or other labels: its source has changed")
        columns = [ColumnInfo(str(name)) for name in bunch.feature_names]
        label = ColumnInfo("progression", 25.0, 346.0)
        return numeric_table("diabetes", columns, bunch.data, label, bunch.target)
