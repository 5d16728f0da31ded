"""From the cells of a party's file to a :class:`vflens.tables.table.Table`, or a sentence about the fault.

Steps: names, text (ids, labels, split, encoded columns), rows with missing values, then numbers, chunk by
chunk into the table's one array: memory never holds both the file and its table. The caller adds the name of
the file to the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vflens.array import row_blocks
from vflens.errors import DataError
from vflens.names import did_you_mean, has_controls, repeated
from vflens.storage.arrow import in_bytes, strings
from vflens.tables.cells import ROW_NUMBER
from vflens.tables.description import PartyFile
from vflens.tables.encodings import MISSING, MOST_CATEGORIES, Conversion, in_order
from vflens.tables.exact_numbers import as_text
from vflens.tables.features import RawTable, check, features_of, numbers_of, put, refuse_missing
from vflens.tables.labels import codes_of, is_empty, label_of, labels_of, refuse_controls
from vflens.tables.places import Places, data_rows, repeats_earlier
from vflens.tables.table import TRAIN, DroppedRows, Table
from vflens.types import Array, ColumnInfo
from vflens.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from vflens.tables.labels import Text

SPLITS = ("train", "predict")  # by their numbers in Table.split


def coded(name: str, categories: int) -> ColumnInfo:
    """A column of the codes 0, 1, … of so many categories; at least two, so that its bounds differ."""
    alphabet = tuple(map(float, range(max(2, categories))))
    return ColumnInfo(name, 0.0, alphabet[-1], alphabet=alphabet)


def table_of(spec: PartyFile, cells: RawTable) -> Table:
    """The checked table that ``spec`` describes.

    Raises:
        DataError: a column or a cell is not as described.
    """
    names = feature_names(spec, cells.names)
    text = _text(spec, cells)
    ids = _ids(spec, text)
    places = Places.of(ids)
    kept, gaps = _kept(spec, cells, names, text, ids)
    dropped = None if kept.all() else DroppedRows(len(kept), int((~kept).sum()), gaps)
    if not kept.any():
        raise DataError(
            f"it holds no rows{' without missing values' if len(ids) else ''}: a party needs some"
        )
    if not kept.all():
        text = {name: column.filter(kept) for name, column in text.items()}
        places, ids = places.kept(kept), ids[kept]
    labels, class_names = labels_of(spec, text, places)
    split = _split(spec, text, places)
    training = np.full(len(ids), True) if split is None else split == TRAIN
    categorical = spec.categorical
    encoded = {name: _encoded(spec, name, text, places) for name in names if name in categorical}
    infos = {info.name: [info] for info in spec.infos(names)}
    infos |= {name: found[0] for name, found in encoded.items()}
    columns = tuple(info for of_column in infos.values() for info in of_column)
    twice = repeated(c.name for c in columns) if encoded else None
    if twice is not None:
        raise DataError(f"one-hot column {twice!r} has the name of another column: rename that one")
    place = dict(zip(names, np.cumsum([0, *map(len, infos.values())]).tolist(), strict=False))
    plain = {name: at for name, at in place.items() if name not in encoded}
    features, sound = features_of(spec, cells, columns, plain, kept)
    for name, at in place.items():
        if name in encoded:
            codes = encoded[name][1]
            for j in range(len(infos[name])):
                put(features, at + j, codes == j if spec.encode[name] != "ordinal" else codes)
        elif not sound[at]:
            values = np.concatenate([rows[:, at].copy() for rows in row_blocks(features)])
            check(spec, columns[at], values, places, training)
            put(features, at, values)
    named = ids, columns, features, labels, class_names, label_of(spec)
    ordered = {name: found[2] for name, found in encoded.items() if spec.encode[name] == "ordinal"}
    hot = {c.name: name for name, found in encoded.items() if name not in ordered for c in found[0]}
    return Table(*named, split=split, dropped=dropped, categories=ordered, one_hot=hot)


def feature_names(spec: PartyFile, found: Sequence[str]) -> tuple[str, ...]:
    """The features of ``spec`` in a file with the columns ``found``.

    Raises:
        DataError: a column is absent, or a setting is of no feature.
    """
    special = [name for name in (spec.id_column, spec.label_column, spec.split_column) if name is not None]
    names = spec.columns if spec.columns is not None else tuple(n for n in found if n not in special)
    there = set(found)
    for name in [*special, *names]:
        if name not in there and not (name == ROW_NUMBER == spec.id_column):
            near = did_you_mean(name, found)
            remedy = ": set id_column to the column that tells rows apart, or add one"
            missing = f"column {name!r} is missing: the file has {', '.join(found)}{near}"
            raise DataError(missing + (remedy if name == spec.id_column else ""))
    for name in filter(has_controls, names):
        refuse_controls(f"the name {name!r} of a column", [name])
    features = set(names)
    for field in ("bounds", "alphabets", "pixels", "encode", "empty"):
        numeric = (spec.label_kind == "number" and field in ("bounds", "encode")) or field == "empty"
        for name in getattr(spec, field):
            if name not in features and not (numeric and name == spec.label_column):
                raise DataError(
                    f"{field}.{name} describes no feature: these are {', '.join(names) or 'none'}"
                )
    return names


def _text(spec: PartyFile, cells: RawTable) -> dict[str, pa.ChunkedArray]:
    """The text columns; a parquet file may hold lists or raw bytes there. A numeric label that is encoded is
    text without its marks and unit.
    """
    import pyarrow as pa

    kind = spec.encode.get(spec.label_column or "") if spec.label_kind == "number" else None
    label = Conversion(spec.label_column or "", kind)

    special = filter(None, (spec.id_column, spec.label_column, spec.split_column))
    found: dict[str, list[pa.Array]] = {name: [] for name in (*special, *spec.categorical)}
    for start, name, values in cells.chunks(list(found)):
        bare = kind and name == spec.label_column
        cells_of = pa.array(label.numbers(values, start), from_pandas=True) if bare else values
        found[name].append(as_text(name, cells_of))
    label.finish()
    return {name: pa.chunked_array(parts, pa.string()) for name, parts in found.items()}


def _ids(spec: PartyFile, text: Text) -> Array:
    import pyarrow as pa

    column = text.pop(spec.id_column)
    empty = is_empty(column)
    if empty.any():
        raise DataError(
            f"id_column {spec.id_column!r} is empty in {data_rows(np.flatnonzero(empty) + 1)}: fill it in"
        )
    ids = in_bytes(column)
    del column  # it takes as much memory as numbers
    pa.default_memory_pool().release_unused()
    repeats = repeats_earlier(ids)
    if repeats.any():
        what = f"id_column {spec.id_column!r} repeats the id of an earlier row"
        raise Places.of(ids).refusal(
            repeats, f"{what} in", ": remove such rows, or choose a column of unique ids"
        )
    return ids


@dataclass(frozen=True)
class WholeColumns:
    """Tries on whole columns of ``cells``: no advice is given that the next reading refuses."""

    cells: RawTable

    def fault(self, name: str, kind: str, empty: Sequence[str] = ()) -> str:
        """What keeps the column ``name``, whose cells ``empty`` stand for none, from being read as ``kind``,
        counted in all rows; "" of nothing.
        """
        import pyarrow.compute as pc

        conversion, none = Conversion(name, kind), strings(empty)
        for start, _, values in self.cells.chunks([name]):
            texts = as_text(name, values) if empty else values
            conversion.numbers(pc.if_else(pc.is_in(texts, none), None, texts) if empty else texts, start)
        return conversion.fault

    def count(self, name: str, pattern: str) -> int:
        """How many texts of the column ``name`` match the regular expression ``pattern``."""
        import pyarrow.compute as pc

        parts = (pc.match_substring_regex(values, pattern) for _, _, values in self.cells.chunks([name]))
        return sum(int(pc.sum(part).as_py() or 0) for part in parts)


def _kept(
    spec: PartyFile, cells: RawTable, names: Sequence[str], text: Text, ids: Array
) -> tuple[Array, dict[str, int]]:
    """Which rows to keep, bool (n,): all, unless ``missing = "drop_row"``; and the gaps of each column."""
    label = [spec.label_column] if spec.label_column is not None else []
    kept, gaps = np.full(len(ids), True), dict.fromkeys([*names, *label], 0)

    def leave_out(name: str, start: int, empty: Array) -> None:
        kept[start : start + len(empty)] &= ~empty
        gaps[name] += int(empty.sum())

    if spec.missing == "drop_row":
        for start, name, values in numbers_of(spec, cells, [n for n in names if n not in spec.categorical]):
            leave_out(name, start, np.isnan(values))
        for name in spec.categorical:
            if not spec.has_missing(name):
                leave_out(name, 0, is_empty(text[name]))
        for name in label:
            leave_out(name, 0, is_empty(text[name]))
    return kept, {name: count for name, count in gaps.items() if count}


def _split(spec: PartyFile, text: Text, places: Places) -> Array | None:
    if spec.split_column is None:
        return None
    codes = codes_of(
        text.pop(spec.split_column), SPLITS, f"split_column {spec.split_column!r}", "values", places
    )
    return codes.astype(np.uint8)


def _encoded(
    spec: PartyFile, name: str, text: Text, places: Places
) -> tuple[list[ColumnInfo], Array, tuple[str, ...]]:
    """Metadata of the column that ``name`` becomes, or of its one-hot columns; codes (n,); categories."""
    column = text.pop(name)
    empty = (MISSING,) if spec.has_missing(name) else ()
    column = _filled(column) if empty else column
    refuse_missing(spec, name, is_empty(column), places)
    found = spec.categories.get(name) or _found(name, column)
    categories = (*(c for c in found if c not in empty), *empty)
    refuse_controls(f"a category of column {name!r}", categories)
    codes = codes_of(column, categories, f"column {name!r}", f"categories.{name}", places)
    codes = codes.astype(np.min_scalar_type(len(categories)))  # kept until its numbers are written
    if spec.encode[name] != "ordinal":
        hot = [ColumnInfo(f"{name}={category}", 0.0, 1.0, alphabet=(0.0, 1.0)) for category in categories]
        return hot, codes, categories
    return [coded(name, len(categories))], codes, categories


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text whose empty cells are the category *missing*."""
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(pc.fill_null(column, ""), ""), MISSING, column)


def _found(name: str, column: pa.ChunkedArray) -> tuple[str, ...]:
    """The categories of a column: numbers by their size, then texts."""
    texts = column.unique()
    if len(texts) > MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} holds {counted(len(texts), 'different text', ',')}, at most "
            f"{MOST_CATEGORIES:,} are categories: leave it out of columns, or group them"
        )
    return in_order(texts.to_pylist())
