"""A table that a dealer writes for a party: it reads back bit by bit, or is not written."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tablefiles import assert_same

from vflens.errors import DataError, StorageError
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table, write_party_table
from vflens.tables.table import Table
from vflens.types import ColumnInfo

NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), min_size=1, max_size=8),
    unique=True,
)
FLOATS = st.floats(-8e307, 8e307)  # bounds further apart than any number are refused


@st.composite
def tables(draw: st.DrawFn) -> Table:
    ids = draw(NAMES.filter(len))
    names = draw(NAMES.map(lambda drawn: [n for n in drawn if n not in {"id", "label", "split"}]))
    n, d = len(ids), len(names)
    features = draw(hnp.arrays(np.float64, (n, d), elements=FLOATS))
    columns = []
    for j, name in enumerate(names):
        low, high = float(features[:, j].min()), float(features[:, j].max())
        bounded = low < high and draw(st.booleans())
        alphabet = tuple(np.unique(features[:, j]).tolist()) if draw(st.booleans()) else None
        pixel = draw(st.sampled_from([None, (j, 7), (j, 7, 2)]))
        columns.append(
            ColumnInfo(
                name, low if bounded else None, high if bounded else None, alphabet=alphabet, pixel=pixel
            )
        )
    classes = draw(st.sampled_from([(), ("no", "yes"), ("z", "a", "NA")]))
    labels = draw(hnp.arrays(np.int64, n, elements=st.integers(0, len(classes) - 1))) if classes else None
    label = ColumnInfo("amount", -8e307, 8e307) if not classes and draw(st.booleans()) else None
    if label is not None:
        labels = draw(hnp.arrays(np.float64, n, elements=FLOATS))
    split = draw(st.none() | hnp.arrays(np.uint8, n, elements=st.integers(0, 1)))
    return Table(
        np.array([i.encode() for i in ids]),
        tuple(columns),
        features,
        labels,
        class_names=classes,
        label=label,
        split=split,
    )


@given(tables())
def test_what_is_written_reads_back_bit_by_bit(table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = write_party_table(table, Path(folder))
        assert spec.file == Path("data.parquet")
        assert_same(read_party_table(spec, Path(folder)), table)


SMALL = Table(np.array([b"a", b"b"]), (ColumnInfo("x"),), np.array([[-0.0], [1.0]]))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (ColumnInfo("label"), "column 'label' has the name of another column: rename it"),
        (
            ColumnInfo("x", low=0.0),
            "column 'x' is bounded by 0.0 and None: declare both, low below high, or none",
        ),
        (ColumnInfo("x", 1.0, 1.0), "column 'x' is bounded by 1.0 and 1.0"),
    ],
)
def test_tables_that_would_not_read_back_are_not_written(
    tmp_path: Path, column: ColumnInfo, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        write_party_table(replace(SMALL, columns=(column,)), tmp_path)


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*data.parquet"):
        write_party_table(SMALL, tmp_path / "absent")


@pytest.mark.parametrize(
    ("values", "column", "kept"),
    [
        (pa.array([0, 255], pa.uint8()), {}, np.uint8),
        (pa.array([0, 255], pa.int16()), {}, np.float64),
        (pa.array([0, None], pa.uint8()), {}, np.float64),  # the mean of pixels is none
        (pa.array([0, 255], pa.uint8()), {"pixels": {}}, np.float64),
        (pa.array([0, 254], pa.uint8()), {"bounds": {"x": [0, 254]}}, np.float64),
        (pa.array([0, 255], pa.uint8()), {"alphabets": {"x": [0, 255]}}, np.float64),
    ],
)
def test_pixels_that_a_file_has_as_bytes_stay_bytes(
    tmp_path: Path, values: pa.Array, column: dict[str, Any], kept: type
) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "x": values}), tmp_path / "data.parquet")
    described = {"pixels": {"x": [0, 1]}, "bounds": {"x": [0, 255]}, "missing": "mean", **column}
    table = read_party_table(PartyFile.model_validate({"file": "data.parquet", **described}), tmp_path)
    assert table.features.dtype == kept
    assert table.features.tolist() == [[v or 0] for v in values.to_pylist()]


def test_bytes_are_written_and_read_back(tmp_path: Path) -> None:
    columns = tuple(ColumnInfo(f"x{j}", 0.0, 255.0, pixel=(j, 0)) for j in range(2))
    table = Table(SMALL.ids, columns, np.array([[0, 255], [7, 8]], np.uint8))
    assert_same(read_party_table(write_party_table(table, tmp_path), tmp_path), table)
