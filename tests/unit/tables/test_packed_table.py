"""A small dealt table of many columns is one column of parquet, and reads as one with a column each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vflens.errors import DataError
from vflens.tables.cells import TableFile
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table, write_party_table
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table
from vflens.tables.written.packed import COLUMN
from vflens.types import Array, ColumnInfo

PIXELS = tuple(image_columns(9, 9))
NUMBERS = tuple(ColumnInfo(f"x{j}", -9.0, 9.0) for j in range(70))


def table(features: Array, columns: tuple[ColumnInfo, ...], **more: Any) -> Table:
    ids = np.array([f"row {i}".encode() for i in range(len(features))])
    return Table(ids, columns, features, np.arange(len(features)) % 2, ("a", "b"), **more)


def pictures() -> Table:
    drawn = np.random.default_rng(0).integers(0, 256, (7, len(PIXELS)), np.uint8)
    return table(drawn, PIXELS, split=np.array([0, 1] * 3 + [0], np.uint8))


def real() -> Table:
    return table(np.random.default_rng(1).normal(size=(7, len(NUMBERS))), NUMBERS)


def with_a_column_each(spec: PartyFile, folder: Path) -> PartyFile:
    """The same table as an earlier release wrote it."""
    cells = TableFile(folder / spec.file)
    columns = {name: cells_of for block in cells.blocks(cells.names) for name, cells_of in block.items()}
    pq.write_table(pa.table(columns), folder / "apart.parquet")
    return spec.model_copy(update={"file": Path("apart.parquet")})


@pytest.mark.parametrize("made", [pictures, real])
def test_a_small_table_of_many_columns_reads_back_bit_by_bit(tmp_path: Path, made: Any) -> None:
    own = made()
    spec = write_party_table(own, tmp_path)
    assert pq.read_metadata(tmp_path / spec.file).num_columns <= 4
    earlier = with_a_column_each(spec, tmp_path)
    assert pq.read_metadata(tmp_path / earlier.file).num_columns > len(own.columns)
    for read in (read_party_table(spec, tmp_path), read_party_table(earlier, tmp_path)):
        assert read.features.dtype == own.features.dtype
        assert read.features.flags.writeable
        assert read.digest().tolist() == own.digest().tolist()
        assert (read.columns, read.class_names) == (own.columns, own.class_names)
        splits = [None if one.split is None else one.split.tolist() for one in (read, own)]
        assert splits[0] == splits[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": tuple(c.name for c in reversed(NUMBERS))},
        {"columns": ("x3", "x1"), "bounds": {}},
        {"encode": {"x2": "number"}},
        {"empty": {"x2": ("0.5",)}, "missing": "mean"},
        {"missing": "drop_row"},
        {"encode": {"x5": "ordinal"}, "bounds": {}},
    ],
)
def test_a_changed_description_reads_alike(tmp_path: Path, changes: dict[str, Any]) -> None:
    own = real()
    own.features[2, 2], own.features[3, 5] = 0.5, np.nan if changes.get("missing") == "drop_row" else 0.25
    spec = write_party_table(own, tmp_path).model_copy(update=changes)
    packed, apart = (read_party_table(s, tmp_path) for s in (spec, with_a_column_each(spec, tmp_path)))
    assert packed.digest().tolist() == apart.digest().tolist()
    assert packed.columns == apart.columns
    assert packed.dropped == apart.dropped


def test_a_number_out_of_bounds_is_refused(tmp_path: Path) -> None:
    own = real()
    own.features[1, 4] = 10.0
    spec = write_party_table(own, tmp_path)
    with pytest.raises(DataError, match=r"'x4' holds a number in .* outside its bounds"):
        read_party_table(spec, tmp_path)


@pytest.mark.parametrize(("rows", "columns"), [(7, 64), (1 << 14, 65)])
def test_a_table_of_few_columns_or_many_rows_keeps_a_column_each(
    tmp_path: Path, rows: int, columns: int
) -> None:
    infos = tuple(ColumnInfo(f"x{j}") for j in range(columns))
    spec = write_party_table(table(np.zeros((rows, columns)), infos), tmp_path)
    assert pq.read_schema(tmp_path / spec.file).names == ["id", *(c.name for c in infos), "label"]


HALF = json.dumps(["\ud800", *(f"x{j}" for j in range(1, len(NUMBERS)))]).encode()


@pytest.mark.parametrize("noted", [b"{", b"3", b'["x0"]', b'["x0", "x0"]', b"[" * 10**5, HALF])
def test_names_that_do_not_fit_are_refused(tmp_path: Path, noted: bytes) -> None:
    spec = write_party_table(real(), tmp_path)
    file = tmp_path / spec.file
    pq.write_table(pq.read_table(file).replace_schema_metadata({COLUMN.encode(): noted}), file)
    with pytest.raises(DataError, match="its numbers do not fit their names: deal the table anew"):
        read_party_table(spec, tmp_path)


def test_missing_rows_are_refused(tmp_path: Path) -> None:
    spec = write_party_table(real(), tmp_path)
    file = tmp_path / spec.file
    stored = pq.read_table(file)
    place = stored.schema.get_field_index(COLUMN)
    field = stored.schema.field(place)
    gaps = pa.array([None, *stored[COLUMN].to_pylist()[1:]], field.type)
    pq.write_table(stored.set_column(place, field, gaps), file)
    for changes in ({}, {"encode": {"x2": "number"}}):
        with pytest.raises(DataError, match="do not fit their names"):
            read_party_table(spec.model_copy(update=changes), tmp_path)


def test_a_file_of_others_with_such_a_column_reads_as_before(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], COLUMN: [1.0, 2.0]}), tmp_path / "own.parquet")
    read = read_party_table(PartyFile(file=Path("own.parquet")), tmp_path)
    assert (read.names, read.features.tolist()) == ([COLUMN], [[1.0], [2.0]])


def test_a_label_of_that_name_is_refused(tmp_path: Path) -> None:
    own = replace(real(), label=ColumnInfo(COLUMN, 0.0, 1.0), class_names=())
    with pytest.raises(DataError, match="has the name of another column: rename it"):
        write_party_table(own, tmp_path)


def test_clients_share_what_their_columns_declare(tmp_path: Path) -> None:
    spec = write_party_table(pictures(), tmp_path)
    again = PartyFile.model_validate_json(spec.model_dump_json())
    first, second = (read_party_table(s, tmp_path).columns for s in (spec, again))
    assert [*map(id, first)] == [*map(id, second)]


def test_the_names_stand_in_the_file(tmp_path: Path) -> None:
    spec = write_party_table(pictures(), tmp_path)
    noted = pq.read_schema(tmp_path / spec.file).metadata[COLUMN.encode()]
    assert json.loads(noted) == [c.name for c in PIXELS]
