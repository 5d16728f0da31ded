"""Any classification set of openml.org by its number: ``openml:61``. Downloaded once, then cached.

scikit-learn fetches, verifies and caches it (folder: environment variable SCIKIT_LEARN_DATA). Nominal
columns get ordinal codes in the sorted order of their categories; a missing value is the category "?".
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from pydantic import Field

from vflens.datasets._build import table
from vflens.errors import DataError
from vflens.plugins.dataset import Dataset
from vflens.storage.json_file import in_words
from vflens.tables.reading import coded
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo
from vflens.words import counted


class OpenML(Dataset):
    """Options: ``id``, the number in the data set's address, https://www.openml.org/d/ID."""

    id: int = Field(gt=0)

    def load(self) -> Table:
        """All rows; no split is given.

        Raises:
            DataError: it cannot be fetched, is sparse, has no or several targets, or a number is missing.
        """
        bunch = self._fetch()
        if bunch.target is None or bunch.target.ndim != 1 or bunch.target.dtype != object:
            raise DataError(
                f"data set openml:{self.id} has no single target of classes: choose one for classification"
            )
        if not isinstance(bunch.data, np.ndarray):
            raise DataError(f"data set openml:{self.id} is sparse: choose a dense one")
        pairs = [
            self._column(name, bunch.data[:, j].astype(np.float64), bunch.categories.get(name))
            for j, name in enumerate(bunch.feature_names)
        ]
        columns, values = zip(*pairs, strict=True)
        classes = bunch.target.astype(str)
        names = tuple(map(str, np.unique(classes)))
        return table(f"openml-{self.id}", columns, np.column_stack(values), classes, names)

    def _fetch(self) -> Any:
        from sklearn.datasets import fetch_openml

        try:
            with warnings.catch_warnings(action="ignore"):  # its retries: the error below reports them once
                return fetch_openml(data_id=self.id, as_frame=False, parser="liac-arff")
        except (OSError, ValueError) as error:
            raise DataError(
                f"data set openml:{self.id} cannot be fetched ({in_words(error)}): check the number and the "
                "connection"
            ) from error

    def _column(self, name: str, values: Array, categories: list[str] | None) -> tuple[ColumnInfo, Array]:
        missing = np.isnan(values)
        if categories is None:
            if missing.any():
                raise DataError(
                    f"data set openml:{self.id}: column {name!r} misses {counted(missing.sum(), 'number')}"
                )
            return ColumnInfo(name), values
        known = [*categories, "?"] if missing.any() else list(categories)
        rank = np.argsort(np.argsort(known))
        codes = np.where(missing, len(known) - 1, values).astype(np.int64)
        return coded(name, len(known)), rank[codes]
