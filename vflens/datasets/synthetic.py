"""Made-up clusters of any size, from scikit-learn's make_classification.

Two Gaussian clusters per class in the informative columns; the other columns are noise, and the order of
all is drawn. No bounds are declared.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from vflens.datasets._build import table
from vflens.plugins.dataset import Dataset
from vflens.tables.recipes import scaled_on_all_rows
from vflens.tables.table import Table
from vflens.types import ColumnInfo
from vflens.words import counted


class Synthetic(Dataset):
    """Options: the numbers of rows, of columns, of classes and of informative columns, and the seed."""

    rows: int = Field(1000, ge=10)
    features: int = Field(10, ge=2)
    classes: int = Field(2, ge=2)
    informative: int = Field(5, ge=2)
    seed: int = Field(0, ge=0, lt=2**32)

    @model_validator(mode="after")
    def _fits(self) -> Synthetic:
        if self.informative > self.features:
            raise ValueError(f"informative = {self.informative} exceeds features = {self.features}")
        if 2 * self.classes > 2**self.informative:
            raise ValueError(
                f"classes = {self.classes} need more than informative = {counted(self.informative, 'column')}"
            )
        if self.rows < 2 * self.classes:
            raise ValueError(f"rows = {self.rows} are too few for classes = {self.classes}")
        return self

    def load(self) -> Table:
        """All rows; no split is given; classes are called "0", "1" and so on."""
        return self._made(redundant=0)

    def as_coded(self) -> Table:
        """With two redundant columns, as in their scripts, if there is room."""
        return scaled_on_all_rows(self._made(redundant=min(2, self.features - self.informative)))

    def _made(self, redundant: int) -> Table:
        from sklearn.datasets import make_classification

        x, y = make_classification(
            n_samples=self.rows,
            n_features=self.features,
            n_informative=self.informative,
            n_redundant=redundant,
            n_classes=self.classes,
            random_state=self.seed,
        )
        columns = [ColumnInfo(f"x{j}") for j in range(self.features)]
        names = tuple(map(str, range(self.classes)))
        return table("synthetic", columns, x, y.astype(str), names)
