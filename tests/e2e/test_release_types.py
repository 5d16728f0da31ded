"""What parquet's types become when a table is released, and files that are none."""

from __future__ import annotations

import json
import os
import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import Refused, Run

TEXTS = ['x,"1"', "y\n2"] * 15


def _table(folder: Path, values: Any) -> Path:
    """30 rows: a number, and a column ``y`` of ``values``."""
    pq.write_table(pa.table({"a": np.arange(30.0) ** 2, "y": values}), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), "categories"])
@pytest.mark.parametrize("role", [("--label", "y"), ("--id", "y", "--keep-ids")])
def test_text_passes_into_csv_however_parquet_stores_it(
    vflens: Run, tmp_path: Path, kind: Any, role: tuple[str, ...]
) -> None:
    texts = pa.array(TEXTS)
    table = _table(tmp_path, texts.dictionary_encode() if kind == "categories" else texts.cast(kind))
    code, _, err = vflens("release", table, *role, "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 0, err
    assert pd.read_csv(tmp_path / "o.csv")["y"].tolist() == TEXTS


@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("kept", [False, True])
def test_an_index_that_pandas_wrote_leaves_only_where_it_is_named(
    vflens: Run, tmp_path: Path, metadata: bool, kept: bool
) -> None:
    frame = pd.DataFrame({"a": np.arange(30.0) ** 2}, index=np.arange(30) + 4000)
    table = pa.Table.from_pandas(frame)
    pq.write_table(table if metadata else table.replace_schema_metadata(None), tmp_path / "t.parquet")
    named = ("--id", "__index_level_0__", "--keep-ids") if kept else ()
    code, out, err = vflens(
        "release", tmp_path / "t.parquet", *named, "--lambda", "1", "--out", tmp_path / "o.parquet", "--json"
    )
    assert code == 0, err
    assert pq.read_schema(tmp_path / "o.parquet").names == ["a", *(["__index_level_0__"] if kept else [])]
    assert ("the index that pandas wrote (__index_level_0__) is left out" in out) is not kept


@pytest.mark.parametrize("odd", [b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": [{"kind": 1}]}'])
def test_odd_metadata_of_pandas_name_no_index(vflens: Run, tmp_path: Path, odd: bytes) -> None:
    table = pa.table({"a": np.arange(30.0) ** 2}).replace_schema_metadata({b"pandas": odd})
    pq.write_table(table, tmp_path / "t.parquet")
    code, _, err = vflens("release", tmp_path / "t.parquet", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 0, err
    assert list(pd.read_csv(tmp_path / "o.csv")) == ["a"]


REFUSED: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "lists as label": ([[1], [2]] * 15, ("--label", "y"), "column 'y' holds list"),
    "lists encoded": ([[1], [2]] * 15, ("--encode", "one-hot"), "column 'y' holds list"),
    "records kept": ([{"q": 1}] * 30, ("--id", "y", "--keep-ids"), "column 'y' holds struct"),
    "bytes kept": ([b"\xff,"] * 30, ("--id", "y", "--keep-ids"), "column 'y' holds binary"),
    "nothing encoded": (pa.nulls(30), ("--encode", "one-hot"), "column 'y' holds no text in any row"),
    "label not a "
    "number": (np.array([1.0, np.nan] * 15), ("--label", "y"), "column 'y' misses a value in data row 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("out", ["o.csv", "o.parquet"])
def test_cells_that_are_no_single_value_are_refused(vflens: Run, tmp_path: Path, case: str, out: str) -> None:
    values, options, sentence = REFUSED[case]
    table = _table(tmp_path, values)
    code, _, err = vflens("release", table, *options, "--lambda", "1", "--out", tmp_path / out)
    assert code == 3
    assert sentence in err
    assert [f.name for f in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_integer_that_float64_rounds_is_refused(vflens: Run, tmp_path: Path, suffix: str) -> None:
    values, file = [*range(70_000), 2**53 + 1], tmp_path / f"t.{suffix}"
    if suffix == "csv":
        file.write_text("".join(f"{v}\n" for v in ("a", *values)))
    else:
        pq.write_table(pa.table({"a": values}), file)
    code, _, err = vflens("release", file, "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 3
    text = "column 'a' holds an integer in data row 70001 that float64 rounds: leave"
    assert err.startswith(f"error: {file}: {text}")
    assert err.endswith("; --id a leaves it out\n")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_integer_that_float64_holds_is_no_matter_of_its_type(
    vflens: Run, tmp_path: Path, suffix: str
) -> None:
    """It is read; noise of deviation 1 beside it is refused for another reason."""
    values, file = [*range(100), 2**60], tmp_path / f"t.{suffix}"
    if suffix == "csv":
        file.write_text("".join(f"{v}\n" for v in ("a", *values)))
    else:
        pq.write_table(pa.table({"a": values}), file)
    code, _, err = vflens("release", file, "--lambda", "1", "--out", tmp_path / "o.csv")
    assert (code, err) == (
        2,
        "error: column 'a' holds numbers where float64 has steps of 256: "
        "noise of deviation 1 would be rounded away, ask for more noise or rescale the column\n",
    )


def test_a_row_beyond_the_reader_s_block_is_refused_in_plain_words(vflens: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n" + "1,2\n" * 200_000 + '1,"2\n' + "1,2\n" * 300_000)
    code, _, err = vflens("release", tmp_path / "t.csv", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 3
    text = (
        r"a row after data row \d+ is longer than 524,288 bytes: close its quotes, "
        r"or shorten its longest cell"
    )
    assert re.fullmatch(rf"error: {tmp_path / 't.csv'}: {text}\n", err)


def test_codes_of_numbers_follow_their_size(vflens: Run, tmp_path: Path) -> None:
    table = _table(tmp_path, pa.array(["10", "9", "-1"] * 10))
    options = ("--encode", "ordinal", "--lambda", "1", "--out", tmp_path / "o.csv", "--json")
    facts = json.loads(vflens("release", table, *options).out)
    assert facts["encodings"]["y"]["categories"] == ["-1", "9", "10"]


def test_a_pipe_is_refused_and_not_waited_for(vflens: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    code, _, err = vflens("release", tmp_path / "t.csv", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 3
    assert "it is no file: name a CSV or parquet file" in err


def test_a_folder_in_the_place_of_an_output_is_refused_before_anything_is_written(
    vflens: Run, tmp_path: Path
) -> None:
    table = _table(tmp_path, np.arange(30.0) ** 3)
    (tmp_path / "o.csv").mkdir()
    code, _, err = vflens("release", table, "--lambda", "1", "--force", "--out", tmp_path / "o.csv")
    assert (code, "is a folder" in err) == (2, True)
    assert {f.name for f in tmp_path.iterdir()} == {"t.parquet", "o.csv"}


@pytest.mark.parametrize("rows", [10, 40])
def test_a_table_that_changes_while_it_is_read_is_not_released(
    vflens: Run, tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("a\n" + "1\n2\n" * 10)

    def changed(*known: Any) -> None:
        (tmp_path / "t.csv").write_text("a\n" + "1\n" * rows)

    monkeypatch.setattr("vflens.experiments.release.run.refuse_invisible", changed)  # between the two passes
    code, _, err = vflens("release", tmp_path / "t.csv", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert (code, "changed between its two readings" in err) == (3, True)
    assert [f.name for f in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_money_dates_and_gaps_are_released_by_the_kinds_of_an_audit(
    vflens: Run, tmp_path: Path, suffix: str
) -> None:
    """Noise of deviation .001 leaves the numbers legible."""
    rows = range(40)
    frame = pd.DataFrame(
        {
            "income": [f"€ {1 + i * 7 % 13},{i % 10}00.50" for i in rows],
            "opened": [f"{i % 28 + 1:02}/02/2024" for i in rows],
            "job": [None if i % 5 == 0 else "ab"[i % 2] for i in rows],
        }
    )
    file, out = tmp_path / f"t.{suffix}", tmp_path / "o.csv"
    frame.to_csv(file, index=False) if suffix == "csv" else frame.to_parquet(file)
    encode = ("income=number", "opened=date:%d/%m/%Y", "job=one_hot:missing")
    flags = [f"--encode={kind}" for kind in encode]
    code, text, err = vflens("release", file, *flags, "--lambda", "1e12", "--out", out, "--json")
    assert code == 0, err
    facts, found = json.loads(text), pd.read_csv(out)
    assert facts["conversions"] == {"income": "number", "opened": "date:%d/%m/%Y"}
    income = [(1 + i * 7 % 13) * 1000 + i % 10 * 100 + 0.5 for i in rows]
    assert np.allclose(found["income"], income, atol=0.02)
    days = [(date(2024, 2, i % 28 + 1) - date(1970, 1, 1)).days for i in rows]
    assert np.allclose(found["opened"], days, atol=0.02)
    gaps = [float(i % 5 == 0) for i in rows]
    assert np.allclose(found["job=missing"], gaps, atol=0.02)
    assert list(found.columns) == ["income", "opened", "job=a", "job=b", "job=missing"]


def test_a_cell_that_is_not_of_its_kind_is_refused(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n5 %\nfive\n")
    text = refused(
        3, "release", tmp_path / "t.csv", "--encode", "a=number", "--lambda", 1, "--out", tmp_path / "o.csv"
    )
    assert text == (
        f"{tmp_path / 't.csv'}: column 'a' holds no number as 1,234.5 in data row 2: correct it, or choose "
        "other marks (encode.a)"
    )
