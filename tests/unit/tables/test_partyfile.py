"""A party's own file: what is read, bit for bit."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tablefiles import assert_same, read, spec

from vflens.errors import DataError
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.types import Array, ColumnInfo

EXAMPLES = Path(__file__).parents[3] / "examples"
CSV = """id,age,job,y,part
007,30,clerk,no,train
008,41.5,?,yes,train
c 9,20,admin,no,predict
"""
FULL = {"label_column": "y", "split_column": "part", "encode": {"job": "ordinal"}}


def test_a_csv_is_read_as_described(tmp_path: Path) -> None:
    table = read(tmp_path, CSV, bounds={"age": [0, 100]}, **FULL)
    assert table.ids.tolist() == [b"007", b"008", b"c 9"]
    assert table.columns == (
        ColumnInfo("age", 0.0, 100.0),
        ColumnInfo("job", 0.0, 2.0, alphabet=(0.0, 1.0, 2.0)),
    )
    assert table.features.tolist() == [[30, 2], [41.5, 0], [20, 1]]  # "?" sorts before "admin"
    assert table.labels is not None
    assert table.split is not None
    assert (table.labels.tolist(), table.class_names, table.split.tolist()) == (
        [0, 1, 0],
        ("no", "yes"),
        [0, 0, 1],
    )
    assert table.labels.dtype == np.int64
    assert table.split.dtype == np.uint8


def test_one_hot_and_fixed_categories_and_classes(tmp_path: Path) -> None:
    settings = FULL | {"encode": {"job": "one_hot"}, "categories": {"job": ["clerk", "?", "admin", "chef"]}}
    table = read(tmp_path, CSV, classes=["yes", "no", "maybe"], columns=["job"], **settings)
    assert [c.name for c in table.columns] == ["job=clerk", "job=?", "job=admin", "job=chef"]
    assert table.columns[0] == ColumnInfo("job=clerk", 0.0, 1.0, alphabet=(0.0, 1.0))
    assert table.features.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert table.labels is not None
    assert table.labels.tolist() == [1, 0, 1]


def test_alphabets_and_pixels_become_metadata(tmp_path: Path) -> None:
    table = read(tmp_path, "id,p\na,1\nb,0\n", alphabets={"p": [0, 1]}, pixels={"p": [2, 3, 1]})
    assert table.columns == (ColumnInfo("p", alphabet=(0.0, 1.0), pixel=(2, 3, 1)),)


def test_a_column_of_one_category_keeps_a_width(tmp_path: Path) -> None:
    table = read(tmp_path, "id,j\na,x\nb,x\n", encode={"j": "ordinal"})
    assert table.columns == (ColumnInfo("j", 0.0, 1.0, alphabet=(0.0, 1.0)),)


def test_gzip_and_absolute_paths(tmp_path: Path) -> None:
    file = tmp_path / "data.csv.gz"
    file.write_bytes(gzip.compress(CSV.encode()))
    assert_same(read_party_table(spec(**FULL | {"file": file})), read(tmp_path, CSV, **FULL))


def test_a_party_may_hold_labels_only(tmp_path: Path) -> None:
    table = read(tmp_path, "id,y\na,0\nb,1\n", label_column="y")
    assert table.features.shape == (2, 0)


def test_spaces_around_numbers_and_a_byte_order_mark_are_no_content(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffid,x\r\na, 1\r\nb,2 \r\n").features.tolist() == [[1], [2]]


def test_a_number_far_down_may_have_another_form_than_the_first(tmp_path: Path) -> None:
    rows = [f"r{i},{i}" for i in range(200_000)]
    table = read(tmp_path, "\n".join(["id,x", *rows, "last,0.5"]) + "\n")
    assert table.features[-1, 0] == 0.5


def test_parquet_columns_of_other_types(tmp_path: Path) -> None:
    job = pa.array(["b", "a"]).dictionary_encode()
    data = {
        "id": [7, 8],
        "flag": [True, False],
        "small": pa.array([1, 2], pa.int8()),
        "job": job,
        "y": [0, 1],
    }
    pq.write_table(pa.table(data), tmp_path / "x.parquet")
    table = read_party_table(spec(file="x.parquet", label_column="y", encode={"job": "ordinal"}), tmp_path)
    assert table.ids.tolist() == [b"7", b"8"]
    assert table.features.tolist() == [[1, 1, 1], [0, 2, 0]]
    assert table.class_names == ("0", "1")


MISSING_CELLS = "id,x,j,part\na,1,u,train\nb,,u,train\nc,3,NA,train\nd,8,v,predict\n"


def test_rows_with_missing_values_can_be_dropped(tmp_path: Path) -> None:
    table = read(tmp_path, MISSING_CELLS, split_column="part", encode={"j": "ordinal"}, missing="drop_row")
    assert table.ids.tolist() == [b"a", b"d"]
    assert table.features.tolist() == [[1, 0], [8, 1]]


def test_missing_numbers_can_become_the_mean_of_the_training_rows(tmp_path: Path) -> None:
    table = read(tmp_path, MISSING_CELLS, split_column="part", columns=["x"], missing="mean")
    assert table.features.tolist() == [[1], [2], [3], [8]]


def test_row_numbers_that_pandas_writes_along_are_no_column(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    table[table.x > 1].to_parquet(tmp_path / "x.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "x.parquet").names
    assert [c.name for c in read_party_table(spec(file="x.parquet"), tmp_path).columns] == ["x"]


def test_quoted_cells_of_several_lines_are_read_in_files_of_many_blocks(tmp_path: Path) -> None:
    rows = [f'r{i},"line\n{i},2 of {i}\n",{i}' for i in range(60_000)]
    table = read(tmp_path, "\n".join(["id,note,x", *rows]), columns=["x"])
    assert (tmp_path / "data.csv").stat().st_size > 1 << 20
    assert np.array_equal(table.features[:, 0], np.arange(60_000))


def test_nan_in_parquet_is_missing_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "x": [1.0, float("nan")]}), tmp_path / "x.parquet")
    with pytest.raises(
        DataError, match=r"x.parquet: column 'x' misses the value of data row 2: fill it in, or set missing"
    ):
        read_party_table(spec(file="x.parquet"), tmp_path)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("9007199254740993.0", 2.0**53),
        ("9007199254740993e0", 2.0**53),
        ("1e23", 1e23),
        (" 9007199254740992 ", 2.0**53),
        ("00000000000000000012", 12.0),
    ],
)
def test_what_is_written_as_a_measurement_is_read_as_the_nearest_number(
    tmp_path: Path, cell: str, value: float
) -> None:
    assert read(tmp_path, f"id,x\na,{cell}\nb,\n", missing="drop_row").features.tolist() == [[value]]


def test_the_examples_share_people_and_two_parties_know_more_than_one() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    passive = read_party_table(spec(file="bank_passive.csv", encode={"job": "one_hot"}), EXAMPLES)
    active = read_party_table(spec(file="bank_active.csv", label_column="subscribed"), EXAMPLES)
    common, left, right = np.intersect1d(passive.ids, active.ids, return_indices=True)
    assert len(common) == 180
    assert len(passive.ids) == len(active.ids) == 200
    assert (np.diff(left) < 0).any()
    assert active.labels is not None
    labels = active.labels[right]

    def accuracy(*parts: Array) -> float:
        x = np.hstack(parts)
        x = (x - x.min(0)) / np.ptp(x, axis=0)
        return float(cross_val_score(LogisticRegression(C=10), x, labels, cv=10).mean())

    alone, together = (
        accuracy(active.features[right]),
        accuracy(active.features[right], passive.features[left]),
    )
    assert together > alone + 0.05 > 0.75


def test_columns_whose_names_begin_alike_stay_apart(tmp_path: Path) -> None:
    columns = {"id": ["p", "q"], "a.b": [1.0, 2.0], "a": [3.0, 4.0], "a.b.c": [5.0, 6.0]}
    pq.write_table(pa.table(columns), tmp_path / "dotted.parquet")
    table = read_party_table(PartyFile(file=tmp_path / "dotted.parquet"))
    assert [c.name for c in table.columns] == ["a.b", "a", "a.b.c"]
    np.testing.assert_array_equal(table.features, [[1, 3, 5], [2, 4, 6]])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_many_chunks_is_read_as_row_by_row(tmp_path: Path, suffix: str) -> None:
    """By Python's own csv reader: rows with gaps leave, codes and numbers stay with their rows."""
    rng, n = np.random.default_rng(8), 70_000
    cells = {
        "x": ["" if u < 0.01 else repr(u) for u in rng.random(n).tolist()],
        "job": [["", "clerk", "cook", "admin"][i] for i in rng.choice(4, n, p=[0.01, 0.4, 0.3, 0.29])],
        "z": list(map(str, rng.integers(0, 9, n))),
        "id": [f"row {i}" for i in rng.permutation(n)],
    }
    with (tmp_path / "data.csv").open("w", newline="") as out:
        csv.writer(out).writerows([list(cells), *zip(*cells.values(), strict=True)])
    columns = {name: pa.array([v or None for v in values]) for name, values in cells.items()}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    with (tmp_path / "data.csv").open(newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["x"] and row["job"]]
    table = read_party_table(
        spec(file=f"data.{suffix}", encode={"job": "one_hot"}, missing="drop_row"), tmp_path
    )
    assert 0.97 * n < len(rows) < 0.99 * n
    assert table.ids.tolist() == [row["id"].encode() for row in rows]
    jobs = ["admin", "clerk", "cook"]
    assert [c.name for c in table.columns] == ["x", "job=admin", "job=clerk", "job=cook", "z"]
    expected = [[float(r["x"]), *(float(r["job"] == job) for job in jobs), float(r["z"])] for r in rows]
    assert np.array_equal(table.features, expected)
