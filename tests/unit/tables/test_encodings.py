"""Texts as numbers: marks and units, dates, gaps as a category; the twins are Python's own."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vflens.errors import DataError
from vflens.storage.arrow import strings
from vflens.tables.description import PartyFile
from vflens.tables.encodings import Conversion, checked_kind, in_order
from vflens.tables.files import read_party_table
from vflens.tables.table import Table
from vflens.tables.written.numbers import MARKS


def _read(folder: Path, cells: list[str], kind: str, **settings: Any) -> Table:
    lines = [f'{i},"{cell}"\n' for i, cell in enumerate(cells)]
    (folder / "data.csv").write_text("id,x\n" + "".join(lines))
    spec = {"file": "data.csv", "encode": {"x": kind}, **settings}
    return read_party_table(PartyFile.model_validate(spec), folder)


def test_codes_are_no_money(tmp_path: Path) -> None:
    """ICD10 is 10 of nothing."""
    with pytest.raises(DataError, match=r"holds no number as 1,234.5 in data row 1 and 1 more"):
        _read(tmp_path, ["ICD10", "ICD21"], "number")


@pytest.mark.parametrize(
    ("kind", "cells", "numbers"),
    [
        ("number", ["€ 1,234.50", "-€ 5", "€-1,000,000"], [1234.5, -5, -1e6]),
        ("number", ["12 %", "7.5%"], [12, 7.5]),
        ("number", ["1,234,567.125", "12"], [1234567.125, 12]),
        ("number", [" USD 30,280.44 ", "USD\u00a01"], [30280.44, 1]),
        ("number:1.234,5", ["1.234,50 €", "7 €", "-0,25 €"], [1234.5, 7, -0.25]),
        ("number:1 234,5", ["1 234,5", "1\u00a0234\u202f567", "9"], [1234.5, 1234567, 9]),
        ("number:1'234.5", ["CHF 1'234.5"], [1234.5]),
        ("date", ["1970-01-02", " 2024-02-29 "], [1, 19782]),
        ("date:%d/%m/%Y", ["01/01/1970", "31/12/1969"], [0, -1]),
        ("date:%Y-%m-%d %H:%M", ["1970-01-01 12:00"], [0.5]),
        ("date:%Y-%m-%dT%H%z", ["1970-01-01T01+0100"], [0]),
    ],
)
def test_texts_become_numbers(tmp_path: Path, kind: str, cells: list[str], numbers: list[float]) -> None:
    assert _read(tmp_path, cells, kind).features[:, 0].tolist() == numbers


@pytest.mark.parametrize(
    ("kind", "cells", "message"),
    [
        ("number", ["€ 5", "$ 5"], "another unit than '€' in data row 2: give all cells one unit"),
        ("number", ["12 %", "13", "14"], "another unit than '%' in data row 2 and 1 more: "),
        ("number", ["1,23"], r"no number as 1,234.5 in data row 1: correct .* \(encode.x\)$"),
        ("number:1.234,5", ["5", "1,234.5"], "no number as 1.234,5 in data row 2: "),
        ("number", ["1", "9007199254740993"], "an integer in data row 2 that float64 rounds"),
        ("date", ["2024-02-29", "2023-02-29"], "no date as %Y-%m-%d in data row 2: correct it, or give its"),
        ("date:%d/%m/%Y", ["05/02/24"], "no date as %d/%m/%Y in data row 1"),
    ],
)
def test_other_texts_are_refused(tmp_path: Path, kind: str, cells: list[str], message: str) -> None:
    with pytest.raises(DataError, match=f"column 'x' holds {message}"):
        _read(tmp_path, cells, kind)


def test_gaps_in_numbers_and_dates_are_missing(tmp_path: Path) -> None:
    assert _read(tmp_path, ["$5", "", "$1"], "number", missing="mean").features.tolist() == [[5], [3], [1]]
    assert len(_read(tmp_path, ["", "1970-01-01"], "date", missing="drop_row").ids) == 1


@given(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), st.sampled_from(sorted(MARKS)))
def test_a_number_is_read_as_it_is_written(number: float, how: str) -> None:
    thousands, decimal = MARKS[how]
    text = f"{number:,.2f}".translate({ord(","): thousands, ord("."): decimal})
    assert Conversion("x", f"number:{how}").numbers(strings([f"{text} %"]), 0).tolist() == [number]


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)))
def test_a_date_is_its_distance_from_1970(day: date) -> None:
    cells = strings([f"{day.day:02}.{day.month:02}.{day.year:04}"])
    days = (day - date(1970, 1, 1)).days
    assert Conversion("x", "date:%d.%m.%Y").numbers(cells, 0).tolist() == [days]


def test_dates_of_a_parquet_file_need_no_format(tmp_path: Path) -> None:
    moment = datetime(1970, 1, 3) + timedelta(hours=6)
    for cells in (pa.array([date(1970, 1, 3)] * 2), pa.array([moment] * 2, pa.timestamp("ns"))):
        pq.write_table(pa.table({"id": ["a", "b"], "x": cells}), tmp_path / "x.parquet")
        spec = PartyFile(file=tmp_path / "x.parquet", encode={"x": "date"})
        assert read_party_table(spec).features[0, 0] in (2.0, 2.25)


def test_numbers_of_a_parquet_file_are_no_dates(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "x": [1.5]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="column 'x' holds double, no date: leave out its encode"):
        read_party_table(PartyFile(file=tmp_path / "x.parquet", encode={"x": "date"}))


def test_gaps_can_be_a_category(tmp_path: Path) -> None:
    table = _read(tmp_path, ["b", "", "a", "NA"], "one_hot:missing", missing="drop_row")
    assert [c.name for c in table.columns] == ["x=a", "x=b", "x=missing"]
    assert table.features.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_a_thousand_categories_are_read_and_no_more(tmp_path: Path) -> None:
    cells = [f"shop {i}" for i in range(1001)]
    assert _read(tmp_path, cells[:1000], "one_hot").features.shape == (1000, 1000)
    with pytest.raises(DataError, match="holds 1,001 different texts, at most 1,000 are categories: leave"):
        _read(tmp_path, cells, "ordinal")
    with pytest.raises(ValidationError, match=r"categories\.x: give 1,000 at most"):
        _read(tmp_path, ["a"], "ordinal", categories={"x": cells})


@pytest.mark.parametrize(
    "kind", ["", "onehot", "ordinal:missing", "number:1_234", "date:", "date:%d", "date:%Q"]
)
def test_unknown_kinds_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"^give ordinal, one_hot, .*, not"):
        checked_kind(kind)


@pytest.mark.parametrize(("kind", "near"), [("numbr", "number"), ("one-hott", "one_hot"), ("dates", "date")])
def test_of_an_unknown_kind_the_nearest_one_is_named(kind: str, near: str) -> None:
    with pytest.raises(ValueError, match=rf", not '{kind}', did you mean {near}( or |, |\?)"):
        checked_kind(kind)


@pytest.mark.parametrize(
    "how",
    ["%d/%m/%y", "%m/%d/%y", "%y-%m-%d", "%d.%m.%y", "%x", "%d %b %y", "%y%m%d", "%d/%m/%y %H:%M"],
)
def test_years_of_two_digits_are_refused(how: str) -> None:
    """45 would be 2045 beside 1969."""
    with pytest.raises(ValueError, match=r"has years of two digits, of which century\? Write them with four"):
        checked_kind(f"date:{how}")


@pytest.mark.parametrize("kind", ["number", "date"])
def test_wrong_cells_are_counted_in_the_whole_file(tmp_path: Path, kind: str) -> None:
    """CSV is read by blocks of a megabyte; this has several."""
    good = {"number": "1,234.50 €", "date": "2024-02-29"}[kind]
    cells = [good if i % 10 else "<0.5" for i in range(1, 100_001)]
    with pytest.raises(DataError, match="in data row 10 and 9,999 more: "):
        _read(tmp_path, cells, kind)
    with pytest.raises(DataError, match="in data row 10 and 9,999 more: "):
        _read(tmp_path, cells, kind, missing="drop_row")


def test_numbers_with_a_decimal_comma_are_ordered_by_size() -> None:
    assert in_order(["10,5", "1,5", "x", "2,25", "1.000"]) == ("1.000", "1,5", "2,25", "10,5", "x")


def test_numbers_are_ordered_by_size_and_texts_behind_them(tmp_path: Path) -> None:
    cells = ["10", "-2", "9", "other", "1.5", "-10", "NA or so", "1e1"]
    table = _read(tmp_path, cells, "ordinal")
    order = ("-10", "-2", "1.5", "9", "10", "1e1", "NA or so", "other")
    assert table.categories == {"x": order}
    assert table.features[:, 0].tolist() == [order.index(cell) for cell in cells]
    assert [c.name for c in _read(tmp_path, ["10", "9"], "one_hot").columns] == ["x=9", "x=10"]
