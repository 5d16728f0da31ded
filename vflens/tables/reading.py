"""From the cells of a party's file to a :class:`vflens.tables.table.Table`, or a sentence about the fault.

Steps: names, text (ids, labels, split, encoded columns), rows with missing values, then numbers, chunk by
chunk into the table's one array: memory never holds both the file and its table. The caller adds the name of
the file to the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np

from vflens.errors import DataError
from vflens.names import has_controls, repeated
from vflens.storage.arrow import in_numpy, strings
from vflens.tables.description import PartyFile
from vflens.tables.exact_numbers import as_floats, beyond_exact, refuse_rounded
from vflens.tables.pixels import too_wide
from vflens.tables.table import TRAIN, Table
from vflens.types import Array, ColumnInfo, Pixel

if TYPE_CHECKING:
    import pyarrow as pa

    Text: TypeAlias = dict[str, pa.ChunkedArray]  # strings by column, null or "" where missing

SPLITS = ("train", "predict")  # by their numbers in Table.split
_CHUNK_ROWS = 1 << 13


class Cells(Protocol):
    """The cells of a file, read on demand."""

    names: Sequence[str]

    def chunks(self, names: Sequence[str]) -> Iterator[tuple[int, str, pa.Array]]:
        """Yield (first row, name, values) of some cells at a time, until all of ``names`` are read; a
        column's in order.
        """

    def are_bytes(self, names: Sequence[str]) -> bool:
        """Whether the file stores all of ``names`` as unsigned 8-bit integers, none missing."""


def coded(name: str, categories: int) -> ColumnInfo:
    """A column of the codes 0, 1, … of so many categories; at least two, so that its bounds differ."""
    alphabet = tuple(map(float, range(max(2, categories))))
    return ColumnInfo(name, 0.0, alphabet[-1], alphabet)


def table_of(spec: PartyFile, cells: Cells) -> Table:
    """The checked table that ``spec`` describes.

    Raises:
        DataError: a column or a cell is not as described.
    """
    names = _feature_names(spec, cells.names)
    text = _text(spec, cells)
    ids = _ids(spec, text.pop(spec.id_column))  # free text after its use: it takes as much memory as numbers
    kept = _kept(spec, cells, names, text, ids)
    if not kept.any():
        raise DataError(
            f"it holds no rows{' without missing values' if len(ids) else ''}: a party needs some"
        )
    if not kept.all():
        text, ids = {name: column.filter(kept) for name, column in text.items()}, ids[kept]
    labels, class_names = _labels(spec, text, ids)
    split = _split(spec, text, ids)
    training = np.full(len(ids), True) if split is None else split == TRAIN
    encoded = {name: _encoded(spec, name, text, ids) for name in names if name in spec.encode}
    infos = {name: encoded[name][0] if name in encoded else [_info(spec, name)] for name in names}
    columns = tuple(info for of_column in infos.values() for info in of_column)
    _refuse_unprintable([*(c.name for c in columns), *class_names])
    twice = repeated(c.name for c in columns)
    if twice is not None:
        raise DataError(f"one-hot column {twice!r} has the name of another column: rename that one")
    if problem := too_wide(columns):
        raise DataError(f"pixels: {problem}")
    as_bytes = _holds_images(columns) and cells.are_bytes(names)
    shape = len(ids), len(columns)
    features = np.zeros(shape, np.uint8) if as_bytes else np.full(shape, np.nan)
    place = dict(zip(names, np.cumsum([0, *map(len, infos.values())]).tolist(), strict=False))
    _fill(cells, {name: place[name] for name in names if name not in encoded}, kept, features)
    for name, at in place.items():
        if name in encoded:
            codes = encoded[name][1]
            for j in range(len(infos[name])):
                features[:, at + j] = codes == j if spec.encode[name] == "one_hot" else codes
        elif not as_bytes:
            _check(spec, infos[name][0], features[:, at], ids, training)
    return Table(ids, columns, features, labels, class_names, split)


def _refuse_unprintable(names: Iterable[str]) -> None:
    """Refuse control characters: names reach terminals and pages of all parties, where a line end or ESC
    could forge text.
    """
    wrong = next((name for name in names if has_controls(name)), None)
    if wrong is not None:
        raise DataError(f"the name {wrong!r} of a column or a class holds control characters: rename it")


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


def _text(spec: PartyFile, cells: Cells) -> dict[str, pa.ChunkedArray]:
    """The text columns; a parquet file may hold lists or raw bytes there."""
    import pyarrow as pa

    special = filter(None, (spec.id_column, spec.label_column, spec.split_column))
    found: dict[str, list[pa.Array]] = {name: [] for name in (*special, *spec.encode)}
    for _, name, values in cells.chunks(list(found)):
        try:
            found[name].append(values.cast(pa.string()))
        except pa.ArrowException as error:
            raise DataError(
                f"column {name!r} cannot be read as text ({error}): write it as text or numbers"
            ) from error
    return {name: pa.chunked_array(parts, pa.string()) for name, parts in found.items()}


def _is_empty(column: pa.ChunkedArray) -> Array:
    """Where text is missing, bool (n,)."""
    import pyarrow.compute as pc

    empty: Array = ~(in_numpy(pc.binary_length(column)) > 0)
    return empty


def _ids(spec: PartyFile, column: pa.ChunkedArray) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    empty = _is_empty(column)
    if empty.any():
        raise DataError(
            f"id_column {spec.id_column!r} is empty in data row {np.argmax(empty) + 1}: fill it in"
        )
    width = pc.max(pc.binary_length(column)).as_py()
    ids = np.zeros(len(column), f"S{width or 1}")
    for start in range(0, len(ids), _CHUNK_ROWS):  # a few Python objects at a time
        chunk = column.slice(start, _CHUNK_ROWS)
        ids[start : start + _CHUNK_ROWS] = chunk.cast(pa.binary()).to_pylist()
    ordered = np.sort(ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise DataError(f"id_column {spec.id_column!r} holds {twice[0].decode()!r} twice: ids must be unique")
    return ids


def _numbers(cells: Cells, names: Sequence[str]) -> Iterator[tuple[int, str, Array]]:
    """As :meth:`Cells.chunks`, values float64, NaN where missing."""
    import pyarrow as pa

    for start, name, values in cells.chunks(names):
        try:
            numbers = as_floats(values)
        except pa.ArrowException as error:
            raise DataError(
                f"column {name!r} is not numeric ({error}): set encode.{name} to 'ordinal' or 'one_hot', "
                "or name the columns to read without it"
            ) from error
        if beyond_exact(numbers):
            refuse_rounded(name, values, start)
        yield start, name, numbers


def _kept(spec: PartyFile, cells: Cells, names: Sequence[str], text: Text, ids: Array) -> Array:
    """Which rows to keep, bool (n,): all, unless ``missing = "drop_row"``."""
    kept = np.full(len(ids), True)
    if spec.missing == "drop_row":
        for start, _, values in _numbers(cells, [n for n in names if n not in spec.encode]):
            kept[start : start + len(values)] &= ~np.isnan(values)
        for name in spec.encode:
            kept &= ~_is_empty(text[name])
    return kept


def _refuse_missing(spec: PartyFile, name: str, missing: Array, ids: Array) -> None:
    if missing.any():
        remedy = (
            "set missing = 'drop_row'" if spec.missing == "mean" else "set missing = 'drop_row' or 'mean'"
        )
        raise DataError(
            f"column {name!r} misses the value of {_where(missing, ids)}: fill it in, or {remedy}"
        )


def _labels(spec: PartyFile, text: Text, ids: Array) -> tuple[Array | None, tuple[str, ...]]:
    """Labels int64 (n,) and the names of the classes."""
    if spec.label_column is None:
        return None, ()
    column = text.pop(spec.label_column)
    empty = _is_empty(column)
    if empty.any():
        raise DataError(
            f"label_column {spec.label_column!r} is empty in {_where(empty, ids)}: label it or drop it"
        )
    names = spec.classes or tuple(sorted(column.unique().to_pylist()))
    if len(names) < 2:
        raise DataError(
            f"label_column {spec.label_column!r} has the classes {list(names)}: a model needs at least two"
        )
    return _codes(column, names, f"label_column {spec.label_column!r}", "classes", ids), names


def _split(spec: PartyFile, text: Text, ids: Array) -> Array | None:
    if spec.split_column is None:
        return None
    codes = _codes(text.pop(spec.split_column), SPLITS, f"split_column {spec.split_column!r}", "values", ids)
    return codes.astype(np.uint8)


def _encoded(spec: PartyFile, name: str, text: Text, ids: Array) -> tuple[list[ColumnInfo], Array]:
    """Metadata of the column that ``name`` becomes, or of its one-hot columns; and its codes (n,)."""
    column = text.pop(name)
    _refuse_missing(spec, name, _is_empty(column), ids)
    categories = spec.categories.get(name) or tuple(sorted(column.unique().to_pylist()))
    codes = _codes(column, categories, f"column {name!r}", f"categories.{name}", ids)
    codes = codes.astype(np.min_scalar_type(len(categories)))  # kept until its numbers are written
    if spec.encode[name] == "one_hot":
        return [ColumnInfo(f"{name}={category}", 0.0, 1.0, (0.0, 1.0)) for category in categories], codes
    return [coded(name, len(categories))], codes


def _info(spec: PartyFile, name: str) -> ColumnInfo:
    low, high = spec.bounds.get(name, (None, None))
    pixel = cast("Pixel | None", spec.pixels.get(name))
    return ColumnInfo(name, low, high, spec.alphabets.get(name), pixel)


def _holds_images(columns: Sequence[ColumnInfo]) -> bool:
    """Whether all columns are pixels of 0 to 255, at least one."""
    return bool(columns) and all(
        c.pixel is not None and (c.low, c.high, c.alphabet) == (0.0, 255.0, None) for c in columns
    )


def _fill(cells: Cells, place: Mapping[str, int], kept: Array, features: Array) -> None:
    """Write the numbers of the ``kept`` rows into ``features`` (n, d), each column in its place."""
    for start, name, values in _numbers(cells, list(place)):
        rows = kept[start : start + len(values)]
        if len(rows) < len(values):
            raise DataError("it grew while it was read: start again when no program writes it")
        first, count = np.count_nonzero(kept[:start]), np.count_nonzero(rows)
        features[first : first + count, place[name]] = values[rows]


def _check(spec: PartyFile, column: ColumnInfo, values: Array, ids: Array, training: Array) -> None:
    """Refuse numbers (n,) that are not as described; missing numbers become the mean, if so configured."""
    name, low, high = column.name, column.low, column.high
    missing = np.isnan(values)
    if spec.missing == "refuse" or column.alphabet is not None:
        _refuse_missing(spec, name, missing, ids)
    _refuse(np.isinf(values), name, values, ids, "which is not finite")
    if low is not None and high is not None:
        _refuse((values < low) | (values > high), name, values, ids, f"outside its bounds [{low}, {high}]")
    if column.alphabet is not None:
        _refuse(~np.isin(values, column.alphabet), name, values, ids, "which is not in its alphabet")
    if missing.any():
        values[missing] = _mean(name, values[training & ~missing])


def _mean(name: str, values: Array) -> float:
    if not len(values):
        raise DataError(f"column {name!r} has no value in any training row: leave it out of columns")
    return float(values.mean())


def _codes(column: pa.ChunkedArray, names: Sequence[str], what: str, where: str, ids: Array) -> Array:
    """The position in ``names`` of every string (n,), int64."""
    import pyarrow.compute as pc

    found = in_numpy(pc.index_in(column, strings(names)))
    unknown = np.isnan(found)
    if unknown.any():
        value = column[int(np.argmax(unknown))].as_py() or ""
        raise DataError(
            f"{what} holds {value!r} in {_where(unknown, ids)}: its {where} are {', '.join(names)}"
        )
    codes: Array = found.astype(np.int64)
    return codes


def _refuse(bad: Array, name: str, values: Array, ids: Array, why: str) -> None:
    if bad.any():
        value = float(values[bad][0])
        raise DataError(
            f"column {name!r} holds {value} in {_where(bad, ids)}, {why}: correct the one or the other"
        )


def _where(bad: Array, ids: Array) -> str:
    others = int(bad.sum()) - 1
    return f"row {ids[bad][0].decode()!r}" + (f" and {others} more" if others else "")
