"""A table: rows with identifiers, columns with public metadata, labels, a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from vflens.array import row_blocks
from vflens.tables.scaling import Scaler
from vflens.types import Array, ColumnInfo

TRAIN, PREDICT = 0, 1


@dataclass(frozen=True)
class DroppedRows:
    """The ``lost`` of all ``rows`` of a file, which have gaps; ``gaps`` counts those of a column, if any."""

    rows: int
    lost: int
    gaps: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one owner, in the units of its file.

    ``ids`` (n,) unique, UTF-8 bytes (a quarter of the memory of text); ``features`` float64 (n, d), finite,
    or uint8 where all columns are pixels of 0 to 255; ``labels`` int64 (n,) in 0..k−1 or None;
    ``class_names`` the k names. Of a numeric label ``labels`` are float64 (n,) in the unit of the file and
    ``label`` is its metadata, with bounds; it has no classes. ``split`` uint8 (n,), 0 train and 1 predict, or
    None if the coordinator draws it. ``dropped``: rows of its file that are none of its rows; None: all are.
    ``categories``: the texts behind the codes of a column, by its name. ``one_hot``: which column of the file
    a one-hot column is of, by its name.
    """

    ids: Array
    columns: tuple[ColumnInfo, ...]
    features: Array
    labels: Array | None = None
    class_names: tuple[str, ...] = ()
    label: ColumnInfo | None = None
    split: Array | None = None
    dropped: DroppedRows | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    one_hot: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """The classes, k; 1 with a numeric label, 0 without labels."""
        return len(self.class_names) if self.label is None else 1

    @property
    def targets(self) -> Array | None:
        """The labels (n,) as a model learns them: numbers float64 in [0, 1] of their bounds, classes as they
        are.
        """
        if self.labels is None or self.label is None:
            return self.labels
        scaled: Array = Scaler.of_bounds(self.label).transform(self.labels[:, None])[0][:, 0]
        return scaled

    @property
    def names(self) -> list[str]:
        """What attacks may estimate of its owner: the columns, and a numeric label."""
        return [c.name for c in (*self.columns, *([] if self.label is None else [self.label]))]

    def digest(self) -> Array:
        """Digest of ids, values and labels in order, uint8 (32,): it identifies a run's table."""
        total = blake2b(digest_size=32)
        for part in (self.ids, self.features, self.labels):
            for rows in () if part is None else row_blocks(part):
                total.update(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        return np.frombuffer(total.digest(), np.uint8)

    def take(self, columns: Sequence[int]) -> Table:
        """The same rows with only these columns, without labels."""
        kept = tuple(self.columns[j] for j in columns)
        return replace(
            self,
            columns=kept,
            features=np.ascontiguousarray(self.features[:, list(columns)]),
            labels=None,
            class_names=(),
            label=None,
        )

    def rows(self, chosen: Array) -> Table:
        """The rows at these positions, in their order."""
        labels, split = (None if v is None else v[chosen] for v in (self.labels, self.split))
        return replace(self, ids=self.ids[chosen], features=self.features[chosen], labels=labels, split=split)
