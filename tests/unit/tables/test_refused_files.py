"""A party's own file: what is refused, and in which words."""

from __future__ import annotations

import gzip
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tablefiles import read, spec
from thinned import first

from vflens.errors import ConfigError, DataError
from vflens.tables.files import read_party_table


@pytest.mark.parametrize(
    ("column", "special"),
    [
        ("id", {}),
        ("y", {"label_column": "y"}),
        ("s", {"split_column": "s"}),
        ("x", {"encode": {"x": "one_hot"}}),
    ],
)
@pytest.mark.parametrize("values", [[[1], [2]], [b"\xff", b"a"]])
def test_what_is_no_text_is_refused(
    tmp_path: Path, column: str, special: dict[str, Any], values: list[Any]
) -> None:
    data = {"id": ["a", "b"], "x": [1, 2], "y": ["0", "1"], "s": ["train", "predict"], column: values}
    pq.write_table(pa.table(data), tmp_path / "x.parquet")
    with pytest.raises(
        DataError, match=rf"column '{column}' holds .*, which is no text: write it as text or numbers"
    ):
        read_party_table(spec(file="x.parquet", columns=["x"], **special), tmp_path)


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {}, "its header is empty or longer than 1,048,576 bytes: begin the file with one line"),
        ("id,x\n", {}, "it holds no rows: a party needs some"),
        ("id,x\na,\n", {"missing": "drop_row"}, "it holds no rows without missing values"),
        (
            "id,x\na,1\nb,2,3\n",
            {},
            " has 3 cells, the header 2 names: give both the same",
        ),
        (
            "id;x\na;1\n",
            {},
            "its header is one column, with other marks than a comma: separate columns by commas",
        ),
        (
            "id;x;y\na;1,5;2\n",
            {},
            "its header is one column, but data row 1 has 2 cells: separate columns by commas, write dec",
        ),
        ("key,x\na,1\n", {}, "column 'id' is missing: the file has key, x: set id_column to the column that"),
        ("id,x\na,1\n", {"columns": ["x", "z"]}, "column 'z' is missing: the file has id, x"),
        ("id,age\na,1\n", {"columns": ["agee"]}, "column 'agee' .* has id, age, did you mean age\\?"),
        ("id,x\na,1\n", {"label_column": "y"}, "column 'y' is missing: the file has id, x"),
        ("id,x,x\na,1,2\n", {}, "column 'x' occurs twice: rename one"),
        (
            "id,x\na,1\nb,2\na,3\n",
            {},
            "id_column 'id' repeats the id of an earlier row in data row 3: remove such rows",
        ),
        ("id,x\na,1\n,2\n", {}, "id_column 'id' is empty in data row 2: fill it in"),
        (
            "id,x\na,1\nb,two\n",
            {},
            "column 'x' holds no number in data row 2: set encode.x to 'ordinal', 'one_hot'",
        ),
        (
            "id,x\na,1\nb,\nc,NA\n",
            {},
            "column 'x' misses the value of data row 2 and 1 more: .*'drop_row' or 'mean'",
        ),
        ("id,j\na,u\nb,\n", {"encode": {"j": "ordinal"}}, "column 'j' misses the value of data row 2"),
        (
            "id,j\na,u\nb,\n",
            {"encode": {"j": "ordinal"}, "missing": "mean"},
            "column 'j' misses the value of data row 2: fill it in, or set missing = 'drop_row'$",
        ),
        ("id,x,z\na,,1\n", {"missing": "mean"}, "column 'x' has no value in any training row"),
        ("id,x\na,1\nb,-inf\n", {}, "column 'x' holds a number in data row 2 that is not finite: correct"),
        (
            "id,x\na,1\nb,9\n",
            {"bounds": {"x": [0, 5]}},
            r"column 'x' holds a number in data row 2 outside its bounds \[0.0, 5.0\]",
        ),
        (
            "id,x\na,1\nb,9\n",
            {"alphabets": {"x": [0, 1]}},
            "column 'x' holds a number in data row 2 that is not in its alphabet",
        ),
        ("id,x\na,1\n", {"bounds": {"z": [0, 5]}}, "bounds.z describes no feature: these are x"),
        ("id,x\na,1\n", {"encode": {"id": "ordinal"}}, "encode.id describes no feature: these are x"),
        (
            "id,j\na,u\nb,w\n",
            {"encode": {"j": "ordinal"}, "categories": {"j": ["u", "v"]}},
            "column 'j' holds another text in data row 2: its categories.j are u, v",
        ),
        (
            "id,j,j=u\na,u,1\n",
            {"encode": {"j": "one_hot"}},
            "one-hot column 'j=u' has the name of another column",
        ),
        ("id,x,y\na,1,0\nb,2,\n", {"label_column": "y"}, "label_column 'y' is empty in data row 2"),
        (
            "id,x,y\na,1,0\nb,2,0\n",
            {"label_column": "y"},
            "label_column 'y' holds 1 class: a model needs at least two",
        ),
        (
            "id,x,y\na,1,0\nb,2,3\n",
            {"label_column": "y", "classes": ["0", "1"]},
            "label_column 'y' holds another text in data row 2: its classes are 0, 1",
        ),
        (
            "id,x,s\na,1,train\nb,2,test\n",
            {"split_column": "s"},
            "split_column 's' holds another text in data row 2: its values are train, predict",
        ),
    ],
)
def test_files_that_are_not_as_described_are_refused(
    tmp_path: Path, text: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message) as refusal:
        read(tmp_path, text, **settings)
    assert str(refusal.value).startswith(f"{tmp_path / 'data.csv'}: ")


ROUNDED = (
    r": column 'x' holds an integer in data row 70001 that float64 rounds: leave the column out, "
    r"or if rounding does no harm store it as floating-point numbers \(in a CSV with a decimal point\)$"
)


@pytest.mark.parametrize("suffix", first(["csv", "parquet", "decimals"]))
@pytest.mark.parametrize(
    ("cell", "rounded"),
    [
        (2**53 + 1, 2**53),
        (-(2**53) - 1, -(2**53)),
        (2**60 + 1, 2**60),
        (2**63 - 1, 2**63),
        (-(2**53), None),
        (2**53 + 2, None),
        (2**60, None),
    ],
)
def test_an_integer_beyond_2_53_is_read_exactly_or_refused(
    tmp_path: Path, suffix: str, cell: int, rounded: int | None
) -> None:
    values, file = [*range(70_000), cell], tmp_path / f"data.{suffix.replace('decimals', 'parquet')}"
    if suffix == "csv":
        file.write_text("id,x\n" + "".join(f"{i},{v}\n" for i, v in enumerate(values)))
    else:
        kind = pa.int64() if suffix == "parquet" else pa.decimal128(38, 0)
        numbers = pa.array(map(Decimal, values) if suffix == "decimals" else values, kind)
        pq.write_table(pa.table({"id": list(map(str, range(70_001))), "x": numbers}), file)
    if rounded is None:
        assert int(read_party_table(spec(file=file.name), tmp_path).features[-1, 0]) == cell
        return
    with pytest.raises(DataError, match=ROUNDED) as refusal:
        read_party_table(spec(file=file.name), tmp_path)
    assert refusal.value.shown == (f"{cell} becomes {rounded}",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,x,y\na,1,{}\n",
            "a row after the header is longer than 1,048,576 bytes: close its quotes, or sho",
        ),
        ('id,x,y\na,1,"{}\n', "a row after the header is longer than 1,048,576 bytes: close its quotes, or"),
        (
            "id,x,{}\na,1,2\n",
            "its header is empty or longer than 1,048,576 bytes: begin the file with one line",
        ),
        (
            "id,x,y\n" + "".join(f"r{i:06},1,2\n" for i in range(100_000)) + "a,1,{}\n",
            "a row after data row [1-9][0-9]* is longer than 1,048,576 bytes: close its quotes, or shorten "
            "its",
        ),
    ],
)
def test_a_row_beyond_the_reader_s_block_is_refused_in_plain_words(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=rf"data.csv: {message}"):
        read(tmp_path, text.replace("{}", "c" * 3 * 2**20))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"columns": ["x", "id"]},
            "column 'id' is named twice among id_column, label_column, split_column and columns",
        ),
        ({"columns": ["x", "x"]}, "column 'x' is named twice"),
        ({"label_column": "id"}, "column 'id' is named twice"),
        ({"bounds": {"x": [2, 2]}}, r"bounds.x = \[2.0, 2.0\]: the first must be below the second"),
        ({"bounds": {"x": [0, float("inf")]}}, "bounds.x.1: give a finite number"),
        ({"encode": {"x": "ordinal"}, "bounds": {"x": [0, 1]}}, "encode.x: an encoded column has its codes"),
        (
            {"encode": {"x": "target"}},
            "encode.x: give ordinal, one_hot, one_hot:missing, number, date, .*, not 'target'",
        ),
        ({"categories": {"x": ["u"]}}, "categories.x: set encode.x to 'ordinal' or 'one_hot' too"),
        ({"categories": {"x": ["u", "u"]}, "encode": {"x": "ordinal"}}, "categories.x names 'u' twice"),
        ({"classes": ["a", "b"]}, "classes are declared without label_column"),
        ({"classes": ["a", "a"], "label_column": "y"}, "classes names 'a' twice"),
        ({"mising": "mean"}, "mising: there is no such setting"),
    ],
)
def test_descriptions_that_contradict_themselves_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spec(**settings)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip")
    (tmp_path / "x.xlsx").write_bytes(b"")
    (tmp_path / "latin.csv").write_bytes("id,größe\na,1\n".encode("latin-1"))
    os.mkfifo(tmp_path / "pipe.csv")
    for file, message in [
        ("absent.csv", "absent.csv: there is no such file: check the path"),
        ("absent.parquet", "absent.parquet: there is no such file: check the path"),
        ("pipe.csv", "pipe.csv: it is no file: name a CSV or parquet file"),
        ("broken.parquet", "it cannot be read"),
        ("broken.csv.gz", "it cannot be read"),
        ("latin.csv", "it holds text that is not UTF-8: save it in that encoding"),
        ("x.xlsx", "its suffix is none of .csv, .csv.gz, .csv.bz2, .csv.zst, .parquet: rename or convert"),
    ]:
        with pytest.raises(DataError, match=message):
            read_party_table(spec(file=file), tmp_path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_named_so(tmp_path: Path, encoding: str) -> None:
    written = "\ufeffid,x\na,1\nb,2\n".encode(encoding)
    (tmp_path / "x.csv").write_bytes(written)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(written))
    for file in ("x.csv", "x.csv.gz"):
        with pytest.raises(DataError, match=rf"/{file}: it is UTF-16: save it as UTF-8, with commas$"):
            read_party_table(spec(file=file), tmp_path)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ('id,"a\nb"\n1,2\n', {}),
        ("id,\x1b[2Ja\n1,2\n", {}),
        ('id,a,y\n1,2,"no\nall is well"\n2,3,yes\n', {"label_column": "y"}),
        ("id,job\n1,\x1b[2J\n2,b\n", {"encode": {"job": "one_hot"}}),
    ],
)
def test_names_hold_no_control_characters(tmp_path: Path, text: str, settings: dict[str, Any]) -> None:
    """Every party prints them: a line end would forge a line of its own."""
    with pytest.raises(DataError, match=r"(column|class).* holds control characters: rename it$"):
        read(tmp_path, text, **settings)


def test_a_name_may_hold_unusual_spaces(tmp_path: Path) -> None:
    assert read(tmp_path, "id,größe\xa0cm\n1,2\n").columns[0].name == "größe\xa0cm"
