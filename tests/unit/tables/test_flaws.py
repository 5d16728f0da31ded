"""*Your table first*: a made-up table for every sentence, with the line that mends it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinned import thinned

from vflens.errors import DataError
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, read_party_table
from vflens.tables.own_check.flaw import Flaw, TableCheck

ROWS = 200
FINE = [f"{random.Random(i).random():.6f}" for i in range(ROWS)]


def _check(folder: Path, settings: Mapping[str, Any] | None = None, /, **columns: list[str]) -> TableCheck:
    """The specification of a CSV file with an id and these columns."""
    table = {"id": [f"r{i}" for i in range(ROWS)], **columns}
    lines = [
        ",".join(f'"{cell}"' if cell else "" for cell in row) for row in zip(*table.values(), strict=True)
    ]
    (folder / "own.csv").write_text("\n".join([",".join(table), *lines, ""]), encoding="utf-8")
    spec = PartyFile.model_validate({"file": "own.csv", **(settings or {})})
    found = check_party_table(spec, folder)
    assert found is not None
    return found


def _only(found: TableCheck) -> Flaw:
    (flaw,) = found.flaws
    return flaw


def _cells(**changed: str) -> list[str]:
    """Numbers without a fault, with these in the data rows "r7" and so on, counted from 1."""
    cells = list(FINE)
    for row, cell in changed.items():
        cells[int(row[1:]) - 1] = cell
    return cells


MONEY = [f"€ {i * 977 % 9000 + 1000:,}.50" for i in range(ROWS)]
SENTENCES: list[tuple[str, list[str], str, bool]] = [
    ("constant", ["7"] * ROWS, "x never varies: it holds one value: leave x out of columns", False),
    ("outlier", _cells(r5="9999999"),
     "99 % of x lie in 9.8e-06 % of its range; the others decide the scale, the farthest in data row 5, and "
     "scaled errors say little: correct such cells, or leave them empty if they stand for a missing value",
     False),
    ("id-like", [str(5000 + 3 * i) for i in range(ROWS)],
     "x holds another whole number in each row: if it identifies rows leave x out of columns, or set "
     'id_column = "x"', False),
    ("id-like", [f"C{i:07}" for i in range(ROWS)],
     "x holds another text in each row: if it identifies rows leave x out of columns, or set "
     'id_column = "x"', True),
    ("id-like", [f"CUS{i * 7 % ROWS}" for i in range(ROWS)],
     "x holds another text in each row: if it identifies rows leave x out of columns, or set "
     'id_column = "x"', True),
    ("id-like", [str(i * 7 % ROWS) for i in range(ROWS)],
     "x holds another whole number in each row: if it identifies rows leave x out of columns, or set "
     'id_column = "x"', False),
    ("empty", [""] * ROWS, "x has no value: leave x out of columns", True),
    ("gaps", _cells(r3="n/a", r9="NA"),
     '2 of 200 rows (1 %) have gaps, x 2: missing = "drop_row" drops them, missing = "mean" fills in '
     "numbers (audit: --missing drop_row)", True),
    ("gaps", ["red", "", "blue", "green"] * (ROWS // 4),
     '50 of 200 rows (25 %) have gaps, x 50: missing = "drop_row" drops them, missing = "mean" fills in '
     'numbers, encode.x = "one_hot:missing" keeps rows without x (audit: --missing drop_row --encode '
     "x=one_hot:missing)", True),
    ("number as text", MONEY,
     'x holds numbers as text, such as € 9,999.99: encode.x = "number" (audit: --encode x=number)', True),
    ("number as text", [f"{i * 7 % 89} %" for i in range(ROWS)],
     'x holds numbers as text, such as 9 %: encode.x = "number" (audit: --encode x=number)', True),
    ("number as text", [f"{i * 7 % 89 + 1}.000,25" for i in range(ROWS)],
     'x holds numbers as text, such as 9.999,99: encode.x = "number:1.234,5" '
     "(audit: --encode x=number:1.234,5)", True),
    ("number as text", [f"{i * 7 % 89 + 1} 000" for i in range(ROWS)],
     'x holds numbers as text, such as 9 999: encode.x = "number:1 234,5" '
     "(audit: --encode 'x=number:1 234,5')", True),
    ("number as text", [f"{i * 7 % 89 + 10},{i * 11 % 900 + 100}" for i in range(ROWS)],
     'x holds numbers as text, such as 99,999 (or number:1.234,5): encode.x = "number" '
     "(audit: --encode x=number)", True),
    ("several units", [f"{'$€'[i % 2]} {i}" for i in range(ROWS)],
     "x holds numbers in 2 units, $, €: give all cells one unit", True),
    ("several units", [f"{i} %" if i % 9 else f"{i}" for i in range(ROWS)],
     "x holds numbers in 2 units, none, %: give all cells one unit", True),
    ("date", [f"{i % 28 + 1:02}/03/2024" for i in range(ROWS)],
     'x holds dates as text, such as 99/99/9999: encode.x = "date:%d/%m/%Y" '
     "(audit: --encode x=date:%d/%m/%Y)", True),
    ("date", [f"0{i % 9 + 1}/03/2024" for i in range(ROWS)],
     'x holds dates as text, such as 99/99/9999 (or date:%m/%d/%Y): encode.x = "date:%d/%m/%Y" '
     "(audit: --encode x=date:%d/%m/%Y)", True),
    ("date", [f"2024-03-{i % 28 + 1:02}T10:11:12" for i in range(ROWS)],
     'x holds dates as text, such as 9999-99-99T99:99:99: encode.x = "date:%Y-%m-%dT%H:%M:%S" '
     "(audit: --encode x=date:%Y-%m-%dT%H:%M:%S)", True),
    ("leading zeros", [f"{i % 150:03}.5" if i % 2 else f"0.{i}1" for i in range(ROWS)],
     'x begins with a 0 in 75 of 200 cells (38 %), which a number loses: encode.x = "one_hot" '
     "(audit: --encode x=one_hot)", False),
    ("huge integers", _cells(r4="9007199254740993", r5="9007199254740992"),
     "x holds integers beyond 2^53 that float64 rounds in 1 of 200 cells (0.5 %): leave x out of columns, or "
     "store it with a decimal point", True),
    ("infinite", _cells(r4="-inf"), "x is infinite in 1 of 200 cells (0.5 %): correct these cells", True),
    ("text", ["red", "blue", "green", "grey"] * (ROWS // 4),
     'x holds text, 4 different: encode.x = "one_hot" (audit: --encode x=one_hot)', True),
    ("two words", ["J", "N"] * (ROWS // 2),
     'x holds two different texts: encode.x = "ordinal" (audit: --encode x=ordinal)', True),
    ("text among numbers", _cells(r7="?", r9="unknown"),
     "x holds numbers, but text in 2 of 200 cells (1 %), first in data row 7: correct these cells, or leave "
     "them empty and set missing", True),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cells", "sentence", "refused"), thinned(SENTENCES))
def test_every_sentence(tmp_path: Path, kind: str, cells: list[str], sentence: str, refused: bool) -> None:
    found = _check(tmp_path, x=cells, y=FINE)
    flaw = next(f for f in found.flaws if f.kind == kind)
    assert (str(flaw), flaw.column, flaw.refused) == (
        sentence,
        "" if kind == "gaps" else "x",
        refused,
    )
    with_the_rest = PartyFile(file=tmp_path / "own.csv")
    if refused:
        with pytest.raises(DataError):
            read_party_table(with_the_rest)
    else:
        read_party_table(with_the_rest)


MENDED = ("number as text", "date", "text", "two words", "leading zeros")


@pytest.mark.parametrize("cells", [cells for kind, cells, _, _ in SENTENCES if kind in MENDED])
def test_the_line_that_mends_does_so(tmp_path: Path, cells: list[str]) -> None:
    encode = _only(_check(tmp_path, x=cells)).remedy.partition('"')[2].rstrip('"')
    assert not _check(tmp_path, {"encode": {"x": encode}}, x=cells).flaws
    read_party_table(PartyFile(file=tmp_path / "own.csv", encode={"x": encode}))


def test_a_table_without_faults_has_no_flaws(tmp_path: Path) -> None:
    few = [str(i % 3) for i in range(ROWS)]
    mostly_zero = ["0"] * 150 + [str(i) for i in range(50)]
    incomes = [str(1000 + i * 7919 % 99_991) for i in range(ROWS)]  # all different
    assert not _check(tmp_path, x=FINE, few=few, skewed=mostly_zero, income=incomes).flaws


def test_leading_zeros_of_too_many_codes_are_not_to_be_categories(tmp_path: Path) -> None:
    """The line that mends once named a kind that the next reading refused."""
    codes = [f"{i * 7:05}" for i in range(1200)]
    lines = [f"r{i},{code},{i % 7}" for i, code in enumerate(random.Random(1).sample(codes, 1200))]
    (tmp_path / "own.csv").write_text("\n".join(["id,zip,y", *lines, ""]), encoding="utf-8")
    found = check_party_table(PartyFile(file=tmp_path / "own.csv"))
    assert found is not None
    assert str(next(f for f in found.flaws if f.kind == "leading zeros")) == (
        "zip begins with a 0 in 1,200 of 1,200 cells, which a number loses; 1,200 different are more than "
        "1,000 categories: group them, such as by their first digits, or leave zip out of columns"
    )


def test_ids_are_counted_and_not_named(tmp_path: Path) -> None:
    ids = ["", *("person-1", "person-2") * 3, *(f"q{i}" for i in range(ROWS - 7))]
    found = _check(tmp_path, id=ids, x=FINE)
    assert [str(f) for f in found.flaws] == [
        "id is empty in 1 of 200 rows (0.5 %): fill it in",
        "id repeats an earlier id in 4 of 200 rows (2 %): remove these rows, or set id_column to a column of "
        "unique ids",
    ]
    assert "person" not in str(found.record())


def test_dropped_rows_are_counted_by_column(tmp_path: Path) -> None:
    gone = {"x": _cells(r1="", r2=""), "y": _cells(r2="", r3="")}
    (flaw,) = _check(tmp_path, {"missing": "drop_row"}, **gone).flaws
    assert flaw.sentence == "3 of 200 rows (1.5 %) are dropped for gaps: x 2, y 2"
    assert flaw.numbers == {"lost": 3, "rows": 200, "missing": {"x": 2, "y": 2}}
    assert not flaw.refused
    assert len(read_party_table(PartyFile(file=tmp_path / "own.csv", missing="drop_row")).ids) == ROWS - 3


def test_gaps_that_are_a_category_cost_nothing(tmp_path: Path) -> None:
    job = ["", *["a", "b"] * 99, "a"]
    assert not _check(tmp_path, {"encode": {"job": "one_hot:missing"}}, job=job).flaws


@pytest.mark.parametrize("encode", [{}, {"shop": "one_hot"}, {"shop": "ordinal"}])
def test_too_many_categories(tmp_path: Path, encode: dict[str, str]) -> None:
    shops = [f"shop {i // 2}" for i in range(2400)]
    (tmp_path / "own.csv").write_text("id,shop\n" + "".join(f"{i},{shop}\n" for i, shop in enumerate(shops)))
    found = check_party_table(PartyFile(file=tmp_path / "own.csv", encode=encode))
    assert found is not None
    assert str(_only(found)) == (
        "shop holds 1,200 different texts, categories are 1,000 at most: group them, or leave shop out of "
        "columns"
    )


def test_a_conversion_that_fails_is_a_flaw(tmp_path: Path) -> None:
    flaw = _only(_check(tmp_path, {"encode": {"x": "number"}}, x=[*MONEY[:-1], "$ 5"]))
    assert flaw.kind == "unreadable"
    assert flaw.sentence.startswith("column 'x' holds another unit than '€' in data row 200")


def test_a_constant_text(tmp_path: Path) -> None:
    flaw = _only(_check(tmp_path, {"encode": {"x": "one_hot"}}, x=["all"] * ROWS))
    assert flaw.sentence == "x never varies: it holds one value"


def test_declared_bounds_are_the_scale(tmp_path: Path) -> None:
    assert not _check(tmp_path, {"bounds": {"x": [0, 1e8]}}, x=_cells(r5="9999999")).flaws


def test_columns_of_a_parquet_file(tmp_path: Path) -> None:
    days = [date(2024, 1, i % 28 + 1) for i in range(ROWS)]
    large = pa.array([2**53 + i for i in range(ROWS)])
    lists = pa.array([[1]] * ROWS)
    table = {
        "id": list(range(ROWS)),
        "day": days,
        "large": large,
        "lists": lists,
        "x": [float(c) for c in FINE],
    }
    pq.write_table(pa.table(table), tmp_path / "own.parquet")
    found = check_party_table(PartyFile(file=tmp_path / "own.parquet"))
    assert found is not None
    assert {f.column: f.kind for f in found.flaws if f.refused} == {
        "day": "date", "large": "huge integers", "lists": "unreadable"
    }  # fmt: skip
    assert found.lines()[-1] == 'without these columns: columns = ["day", "x"] (audit: --columns day,x)'


def test_the_line_of_the_rest_is_left_out_where_all_stay(tmp_path: Path) -> None:
    found = _check(tmp_path, {"columns": ["x"]}, x=["1,5"] * ROWS, y=FINE)
    assert found.features == ("x",)
    assert len(found.lines()) == len(found.flaws) == 1


def test_a_name_that_toml_must_quote_is_quoted(tmp_path: Path) -> None:
    flaw = _only(_check(tmp_path, {}, **{"day of birth": [f"2024-03-{i % 28 + 1:02}" for i in range(ROWS)]}))
    assert flaw.remedy == 'encode."day of birth" = "date:%Y-%m-%d"'
    assert flaw.flag == "--encode 'day of birth=date:%Y-%m-%d'"


def test_a_folder_of_images_has_no_check(tmp_path: Path) -> None:
    assert check_party_table(PartyFile(file=tmp_path)) is None


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=60), st.integers(1, 3))
def test_lost_rows_are_those_that_reading_drops(
    tmp_path_factory: pytest.TempPathFactory, values: list[float | None], step: int
) -> None:
    folder = tmp_path_factory.mktemp("own")
    other = [None if i % (step + 1) == 0 else 1.5 for i in range(len(values))]
    table = {"id": [str(i) for i in range(len(values))], "x": pa.array(values, pa.float64()), "y": other}
    pq.write_table(pa.table(table), folder / "own.parquet")
    found = check_party_table(PartyFile(file=folder / "own.parquet", missing="drop_row"))
    assert found is not None
    lost = [f.numbers["lost"] for f in found.flaws if f.kind == "dropped rows"]
    assert lost == [sum(a is None or b is None for a, b in zip(values, other, strict=True))]


def test_shares_of_an_outlier_are_those_of_numpy(tmp_path: Path) -> None:
    flaw = _only(_check(tmp_path, x=_cells(r5="-5000")))
    x = np.array([float(c) for c in _cells(r5="-5000")])
    first, last = np.quantile(x, [0.005, 0.995], method="nearest")
    inside = (x >= first) & (x <= last)
    assert flaw.numbers["share"] == inside.mean()
    assert flaw.numbers["part"] == (x[inside].max() - x[inside].min()) / np.ptp(x)
