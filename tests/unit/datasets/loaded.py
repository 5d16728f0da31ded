"""Data sets loaded by name, and what holds of every one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from vflens.datasets._resolve import dataset
from vflens.tables.table import Table


def load(name: str, **options: Any) -> Table:
    return dataset(name, options).load()


def counts(table: Table, split: int | None = None) -> dict[str, int]:
    assert table.labels is not None
    labels = table.labels if split is None or table.split is None else table.labels[table.split == split]
    return dict(zip(table.class_names, np.bincount(labels).tolist(), strict=True))


def assert_sound(table: Table) -> None:
    n, d = table.features.shape
    images = all(c.pixel is not None and c.high == 255 for c in table.columns)
    assert table.features.dtype == (np.uint8 if images else np.float64)
    assert table.labels is not None
    assert table.labels.dtype == np.int64
    assert len(np.unique(table.ids)) == n == len(table.labels)
    assert len({c.name for c in table.columns}) == d
    for j, column in enumerate(table.columns):
        x = table.features[:, j]
        assert column.low is None or column.low <= x.min()
        assert column.high is None or column.high >= x.max()
        assert column.alphabet is None or np.isin(x, column.alphabet).all()
