"""Data sets loaded by name."""

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
