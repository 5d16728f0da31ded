"""A checked :class:`vflens.tables.table.Table` from raw columns; no label affects the code of a feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vflens.errors import DataError
from vflens.tables.reading import coded
from vflens.tables.table import PREDICT, TRAIN, Table
from vflens.types import Array, ColumnInfo


def checked_table(
    name: str,
    columns: Sequence[ColumnInfo],
    features: Array,
    classes: Array,
    counts: Mapping[str, int],
    *,
    split: Array | None = None,
) -> Table:
    """The table of data set ``name``: rows are called "name-000000" and so on.

    ``features`` (n, d), uint8 for the pixels of images, and the class names ``classes`` (n,) must be finite
    and have exactly the classes and ``counts`` expected; labels number the classes in the order of
    ``counts``.

    Raises:
        DataError: another shape, a value that is not finite, or other class counts.
    """
    expected = (sum(counts.values()), len(columns))
    if features.shape != expected:
        raise DataError(
            f"data set {name!r} has shape {features.shape}, not {expected}: its source has changed"
        )
    if not np.isfinite(features).all():
        raise DataError(f"data set {name!r} holds values that are not finite: its source has changed")
    found = {str(c): int(n) for c, n in zip(*np.unique(classes, return_counts=True), strict=True)}
    if found != dict(counts):
        raise DataError(
            f"data set {name!r} has class counts {found}, not {dict(counts)}: its source has changed"
        )
    return table(name, columns, features, classes, tuple(counts), split=split)


def table(
    name: str,
    columns: Sequence[ColumnInfo],
    features: Array,
    classes: Array,
    class_names: tuple[str, ...],
    *,
    split: Array | None = None,
) -> Table:
    """The table of data set ``name``, unchecked; all ``classes`` (n,) are in ``class_names``."""
    order = np.argsort(class_names)
    labels = order[np.searchsorted(np.array(class_names)[order], classes)]
    return Table(
        ids=_ids(name, len(features)),
        columns=tuple(columns),
        features=np.ascontiguousarray(features, None if features.dtype == np.uint8 else np.float64),
        labels=labels.astype(np.int64),
        class_names=class_names,
        split=split,
    )


def numeric_table(
    name: str, columns: Sequence[ColumnInfo], features: Array, label: ColumnInfo, values: Array
) -> Table:
    """The table of data set ``name``, whose ``label`` with bounds has the ``values`` (n,)."""
    return Table(
        ids=_ids(name, len(features)),
        columns=tuple(columns),
        features=np.ascontiguousarray(features, np.float64),
        labels=np.ascontiguousarray(values, np.float64),
        label=label,
    )


def _ids(name: str, rows: int) -> Array:
    numbers = np.char.zfill(np.arange(rows).astype(f"S{len(str(rows))}"), 6)
    return np.char.add(f"{name}-".encode(), numbers)


def given_split(train: int, predict: int) -> Array:
    """The split (n,) uint8 of a source that lists ``train`` rows and then ``predict`` rows."""
    return np.repeat(np.array([TRAIN, PREDICT], np.uint8), [train, predict])


def integers(name: str, low: int, high: int, *, pixel: tuple[int, int] | None = None) -> ColumnInfo:
    """A column of the integers ``low`` to ``high``, its bounds and its alphabet."""
    return ColumnInfo(
        name, float(low), float(high), alphabet=tuple(map(float, range(low, high + 1))), pixel=pixel
    )


def encoded(raw: Mapping[str, Array]) -> tuple[tuple[ColumnInfo, ...], Array]:
    """Columns of strings as numbers (n, d); a column with other text becomes ordinal codes."""
    infos, values = zip(*(_encoded(name, strings) for name, strings in raw.items()), strict=True)
    return infos, np.column_stack(values)


def _encoded(name: str, strings: Array) -> tuple[ColumnInfo, Array]:
    try:
        return ColumnInfo(name), strings.astype(np.float64)
    except ValueError:
        categories, codes = np.unique(strings, return_inverse=True)
        return coded(name, len(categories)), codes
