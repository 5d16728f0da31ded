"""Criteo display advertising, the first 10,000 rows, 2 classes: is an ad clicked? Needs VFLENS_DATA.

Source: Kaggle Display Advertising Challenge 2014, the first rows of ``train.txt``: a head, no random sample.
21.8 % are clicked; FedAdOb draws 1 of 17. Its 13 counts x become sign(x) ln(1 + |x|), a missing one 0. Its 26
categories are hashed already: each becomes ``buckets`` columns, with 1 in that of its hash, and none if it is
missing. So all columns are numbers, and no step of theirs looks at labels or at other rows.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.datasets import _local
from vflens.datasets._build import checked_table, integers
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo

FILE = "criteo_train_head10000.txt.gz", "3f5e540548760d377c1393919b53fc3f817ec460e5b1cab248c2cfe6ebec3eb8"
COUNTS = {"no click": 7818, "click": 2182}
NUMBERS, CATEGORIES = (tuple(f"{c}{i}" for i in range(1, n + 1)) for c, n in (("I", 13), ("C", 26)))


class Criteo(Dataset):
    """Options: ``buckets``, the columns of each of the 26 categories; ``ratio``, rows without a click for one
    with it.
    """

    caveat: ClassVar[str] = "Criteo, its first 10,000 rows: 21.8 % are clicked, in FedAdOb's sample 5.9 %"

    buckets: int = Field(8, ge=2, le=256, description="columns of each of the 26 hashed categories")
    ratio: int | None = Field(
        None,
        ge=4,
        le=1000,
        description="rows without a click for one with it: of these so many are drawn, always the same; "
        "default: all 10,000 rows",
    )

    def load(self) -> Table:
        """All rows, or those of ``ratio``; no split is given."""
        text = _local.read(*FILE)
        raw = _local.text_columns(text, ("label", *NUMBERS, *CATEGORIES), delimiter="\t")
        columns = [ColumnInfo(name) for name in NUMBERS]
        columns += [integers(f"{name}={b}", 0, 1) for name in CATEGORIES for b in range(self.buckets)]
        features = [logarithms(raw[name])[:, None] for name in NUMBERS]
        features += [hashed(raw[name], self.buckets) for name in CATEGORIES]
        classes = np.where(raw["label"] == "1", "click", "no click")
        whole = checked_table("criteo", columns, np.hstack(features), classes, COUNTS)
        return whole if self.ratio is None else whole.rows(_drawn(classes == "click", self.ratio))


def _drawn(clicked: Array, ratio: int) -> Array:
    """The rows (m,) that are not ``clicked`` (n,), and one that is for ``ratio`` of them, in their order."""
    others = np.flatnonzero(~clicked)
    clicks = np.flatnonzero(clicked)
    chosen = np.random.default_rng(0).choice(clicks, len(others) // ratio, replace=False)
    return np.sort(np.concatenate([others, chosen]))


def logarithms(counts: Array) -> Array:
    """sign(x) ln(1 + |x|) of whole numbers as text (n,), "" as 0."""
    x = np.where(counts == "", "0", counts).astype(np.float64)
    logs: Array = np.sign(x) * np.log1p(np.abs(x))
    return logs


def hashed(codes: Array, buckets: int) -> Array:
    """Hexadecimal hashes as text (n,), "" if missing, as 0 or 1 (n, buckets): which bucket is the hash's."""
    there = codes != ""
    places = np.array([int(code or "0", 16) % buckets for code in codes.tolist()])
    one_hot: Array = (places[:, None] == np.arange(buckets)) & there[:, None]
    return one_hot.astype(np.float64)
