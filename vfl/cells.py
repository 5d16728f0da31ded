"""From the cells of a party's file to a :class:`vfl.table.Table`, or a sentence that says what is wrong.

Steps: names, ids, raw columns (text or numbers), rows with missing values, labels and split, then each
column's checks and encoding. Whoever calls adds the name of the file to the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from vfl.errors import DataError
from vfl.names import repeated
from vfl.partyfile import PartyFile
from vfl.table import TRAIN, Table
from vfl.types import Array, ColumnInfo

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS = ("train", "predict")  # by their numbers in Table.split


def coded(name: str, categories: int) -> ColumnInfo:
    """A column of the codes 0, 1, … of so many categories; at least two, or bounds would leave no width."""
    alphabet = tuple(map(float, range(max(2, categories))))
    return ColumnInfo(name, 0.0, alphabet[-1], alphabet)


def table_of(spec: PartyFile, data: pa.Table) -> Table:
    """The checked table that ``spec`` describes, from the columns of its file.

    Raises:
        DataError: a column or a cell is not as described.
    """
    names = _feature_names(spec, data.column_names)
    _refuse_no_text(spec, data)
    ids = _ids(spec, data)
    raw = {name: _raw(spec, name, data[name]) for name in names}
    kept = _kept(spec, raw, ids)
    if not kept.any():
        raise DataError(
            f"it holds no rows{' without missing values' if len(ids) else ''}: a party needs some"
        )
    data = data.select([name for name in (spec.label_column, spec.split_column) if name is not None])
    if not kept.all():
        data, ids = data.filter(kept), ids[kept]
        raw = {name: values[kept] for name, values in raw.items()}
    labels, class_names = _labels(spec, data, ids)
    split = _split(spec, data, ids)
    training = np.full(len(ids), True) if split is None else split == TRAIN
    # What was read is let go column by column: a large file is not held once more beside its table.
    parts = [_column(spec, name, raw.pop(name), ids, training) for name in names]
    infos = tuple(chain.from_iterable(part[0] for part in parts))
    twice = repeated(c.name for c in infos)
    if twice is not None:
        raise DataError(f"one-hot column {twice!r} has the name of another column: rename that one")
    features = np.hstack([np.empty((len(ids), 0)), *(part[1] for part in parts)])
    return Table(ids, infos, features, labels, class_names, split)


def _feature_names(spec: PartyFile, found: Sequence[str]) -> tuple[str, ...]:
    twice = repeated(found)
    if twice is not None:
        raise DataError(f"column {twice!r} occurs twice: rename one")
    special = [name for name in (spec.id_column, spec.label_column, spec.split_column) if name is not None]
    names = spec.columns if spec.columns is not None else tuple(n for n in found if n not in special)
    for name in [*special, *names]:
        if name not in found:
            raise DataError(f"column {name!r} is missing: the file has {', '.join(found)}")
    for field in ("bounds", "alphabets", "pixels", "encode"):
        for name in getattr(spec, field):
            if name not in names:
                raise DataError(
                    f"{field}.{name} describes no feature: these are {', '.join(names) or 'none'}"
                )
    return names


def _refuse_no_text(spec: PartyFile, data: pa.Table) -> None:
    """Ids, labels, splits and encoded columns are read as text; a parquet file may hold lists or raw bytes there."""
    import pyarrow as pa

    for name in filter(None, (spec.id_column, spec.label_column, spec.split_column, *spec.encode)):
        try:
            data[name].cast(pa.string())
        except pa.ArrowException as error:
            raise DataError(
                f"column {name!r} cannot be read as text ({error}): write it as text or numbers"
            ) from error


def _text(column: pa.ChunkedArray) -> Array:
    """As strings (n,), "" where missing."""
    import pyarrow as pa

    return np.array(column.cast(pa.string()).fill_null("").to_pylist(), dtype=np.str_)


def _ids(spec: PartyFile, data: pa.Table) -> Array:
    ids = _text(data[spec.id_column])
    if (ids == "").any():
        raise DataError(
            f"id_column {spec.id_column!r} is empty in data row {np.argmax(ids == '') + 1}: fill it in"
        )
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise DataError(
            f"id_column {spec.id_column!r} holds {str(values[counts > 1][0])!r} twice: ids must be unique"
        )
    return ids


def _raw(spec: PartyFile, name: str, column: pa.ChunkedArray) -> Array:
    """Text (n,) of an encoded column, "" where missing; else float64 (n,), NaN where missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name in spec.encode:
        return _text(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)  # "1, 2" is two numbers
    try:
        values: Array = column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise DataError(
            f"column {name!r} is not numeric ({error}): set encode.{name} to 'ordinal' or 'one_hot', "
            "or name the columns to read without it"
        ) from error
    return values


def _kept(spec: PartyFile, raw: Mapping[str, Array], ids: Array) -> Array:
    """Which rows to keep, bool (n,): all, unless ``missing = "drop_row"``."""
    kept = np.full(len(ids), True)
    for name, values in raw.items():
        missing = _is_missing(values)
        if spec.missing == "drop_row":
            kept &= ~missing
        elif missing.any() and (spec.missing == "refuse" or name in {*spec.encode, *spec.alphabets}):
            remedy = (
                "set missing = 'drop_row'" if spec.missing == "mean" else "set missing = 'drop_row' or 'mean'"
            )
            raise DataError(
                f"column {name!r} misses the value of {_where(missing, ids)}: fill it in, or {remedy}"
            )
    return kept


def _labels(spec: PartyFile, data: pa.Table, ids: Array) -> tuple[Array | None, tuple[str, ...]]:
    """Labels int64 (n,) and the names of the classes."""
    if spec.label_column is None:
        return None, ()
    text = _text(data[spec.label_column])
    if (text == "").any():
        raise DataError(
            f"label_column {spec.label_column!r} is empty in {_where(text == '', ids)}: label it or drop it"
        )
    names = spec.classes or tuple(map(str, np.unique(text)))
    if len(names) < 2:
        raise DataError(
            f"label_column {spec.label_column!r} has the classes {list(names)}: a model needs at least two"
        )
    return _codes(text, names, f"label_column {spec.label_column!r}", "classes", ids), names


def _split(spec: PartyFile, data: pa.Table, ids: Array) -> Array | None:
    if spec.split_column is None:
        return None
    codes = _codes(
        _text(data[spec.split_column]), SPLITS, f"split_column {spec.split_column!r}", "values", ids
    )
    return codes.astype(np.uint8)


def _column(
    spec: PartyFile, name: str, values: Array, ids: Array, training: Array
) -> tuple[list[ColumnInfo], Array]:
    """Metadata and values, float64 (n, 1), or (n, number of categories) when one-hot."""
    if name not in spec.encode:
        return _numeric(spec, name, values, ids, training)
    categories = spec.categories.get(name) or tuple(map(str, np.unique(values)))
    codes = _codes(values, categories, f"column {name!r}", f"categories.{name}", ids)
    if spec.encode[name] == "one_hot":
        infos = [ColumnInfo(f"{name}={category}", 0.0, 1.0, (0.0, 1.0)) for category in categories]
        return infos, np.eye(len(categories))[codes]
    return [coded(name, len(categories))], codes[:, None].astype(np.float64)


def _numeric(
    spec: PartyFile, name: str, values: Array, ids: Array, training: Array
) -> tuple[list[ColumnInfo], Array]:
    low, high = spec.bounds.get(name, (None, None))
    alphabet = spec.alphabets.get(name)
    missing = np.isnan(values)
    _refuse(np.isinf(values), name, values, ids, "which is not finite")
    if low is not None and high is not None:
        _refuse((values < low) | (values > high), name, values, ids, f"outside its bounds [{low}, {high}]")
    if alphabet is not None:
        _refuse(~np.isin(values, alphabet) & ~missing, name, values, ids, "which is not in its alphabet")
    if missing.any():
        values = np.where(missing, _mean(name, values[training & ~missing]), values)
    return [ColumnInfo(name, low, high, alphabet, spec.pixels.get(name))], values[:, None]


def _mean(name: str, values: Array) -> float:
    if not len(values):
        raise DataError(f"column {name!r} has no value in any training row: leave it out of columns")
    return float(values.mean())


def _codes(text: Array, names: Sequence[str], what: str, where: str, ids: Array) -> Array:
    """The position in ``names`` of every string (n,), int64."""
    unknown = ~np.isin(text, names)
    if unknown.any():
        value = str(text[unknown][0])
        raise DataError(
            f"{what} holds {value!r} in {_where(unknown, ids)}: its {where} are {', '.join(names)}"
        )
    order = np.argsort(names)
    return order[np.searchsorted(np.array(names)[order], text)].astype(np.int64)


def _refuse(bad: Array, name: str, values: Array, ids: Array, why: str) -> None:
    if bad.any():
        value = float(values[bad][0])
        raise DataError(
            f"column {name!r} holds {value} in {_where(bad, ids)}, {why}: correct the one or the other"
        )


def _is_missing(values: Array) -> Array:
    missing: Array = np.isnan(values) if values.dtype.kind == "f" else values == ""
    return missing


def _where(bad: Array, ids: Array) -> str:
    others = int(bad.sum()) - 1
    return f"row {str(ids[bad][0])!r}" + (f" and {others} more" if others else "")
