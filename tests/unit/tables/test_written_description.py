"""The description that the check writes: what it knows of each kind, and a twin that is another kind."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import messytables
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thinned import first, thinned

from vflens.config import load_description
from vflens.errors import ConfigError, DataError
from vflens.experiments.run.check import check
from vflens.experiments.run.own_tables import describe
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.tables.table import Table
from vflens.types import Document

ROWS = 240
WEEKDAYS = ("SAT", "Sonnabend", "samedi", "sábado,", "sabato", "sexta-feira", "zaterdag", "lör.", "śr")
MIXED = [str(i * 37 % 101 / 8) for i in range(ROWS)]


def _written(folder: Path, cells: dict[str, Any], **written: Any) -> tuple[dict[str, Any], Document, Table]:
    """The settings, the words and the table of a CSV file of these columns."""
    folder.mkdir(exist_ok=True)
    file, own = folder / "own.csv", folder / "own.toml"
    pd.DataFrame(cells).to_csv(file, **{"index": False, **written})
    words = describe(file, own)
    check(own, lambda checks: None)
    return tomllib.loads(own.read_text(encoding="utf-8")), words, read_party_table(load_description(own))


def _ids() -> list[str]:
    return [f"r{i}" for i in range(ROWS)]


def _of(cell: str, other: str) -> list[str]:
    """Cells in which a # is a number."""
    return [(cell if i % 3 else other).replace("#", str(i * 37 % 101 + 10)) for i in range(ROWS)]


#: Cells; the kind, None of numbers as they are, "" of a column that is left out; words to decide; and the
#: number of the first data row.
KINDS: dict[str, tuple[list[str], str | None, str, float | None]] = {
    "a unit": (_of("#,25 mg/dl", "#,5 mg/dl"), "number:1.234,5", "", 10.5),
    "its twin of two units": (_of("#,25 mg/dl", "#,5 mmol/l"), "", "numbers in 2 units, mmol/l, mg/dl", None),
    "flats are no units": ([f"{i % 9 + 1}{'AB'[i % 2]}" for i in range(ROWS)], "one_hot", "", None),
    "below a limit": (_of("#,25", "<0,5"), "number:1.234,5:below=half", "limit in 80 of", 0.25),
    "above a limit": (_of("#.25 g", ">90 g"), "number:below=half", "limit in 80 of 240 cells", 90.0),
    "two numbers": ([f"{i % 40 + 100}/{i % 31 + 60}" for i in range(ROWS)], "", "two numbers", None),
    "classes of size": (_of("18-24", "25-34"), "ordinal", "", 1.0),
    "money": (_of("€ #,000.50", "€ #,500.00"), "number", "", None),
    "per cent": (_of("# %", "#%"), "number", "", 10.0),
    "a date of both orders": ([f"0{i % 9 + 1}/0{i % 8 + 1}/2024" for i in range(ROWS)],
                              "date:%d/%m/%Y", "(or date:%m/%d/%Y)", None),
    "years of two digits": ([f"{i % 28 + 1:02}.03.{i % 50 + 45}" for i in range(ROWS)], "",
                            "of which century", None),
    "times": (["12:30", "06:00:00", "1 days 00:00:00"] * (ROWS // 3), "time", "", 12.5 / 24),
    "no times": (["12:75", "99:99:99", "x:y"] * (ROWS // 3), "one_hot", "", None),
    "seconds since 1970": ([str(1_600_000_000 + i * 977) for i in range(ROWS)], None,
                           "seconds since 1970", 1.6e9),
    "two words": (_of("nein", "ja"), "ordinal", "", 0.0),
    "two words and gaps": ([("oui", "non", "")[i % 3] for i in range(ROWS)], "one_hot:missing", "", None),
    "mail": ([f"p{i % 90}@example.org" for i in range(ROWS)], "", "holds mail addresses", None),
    "IBAN": ([f"DE{i % 90 + 10}500105175407{i:06}" for i in range(ROWS)], "", "account numbers", None),
    "telephone": ([f"+49 170 {i * 7919 % 900000 + 100000}" for i in range(ROWS)], "", "telephone", None),
    "-999": ([("-999", *MIXED)[i % 30] for i in range(ROWS)], None, "is -999 in 8", None),
    "99 among ages": ([str(i % 100) for i in range(ROWS)], None, "", 0.0),
    "9999-12-31": ([f"2024-03-{i % 28 + 1:02}" if i % 9 else "9999-12-31" for i in range(ROWS)],
                   "date:%Y-%m-%d", "", None),
    "words among numbers": ([*MIXED[:-2], "?", "k. A."], None, "text in 2 of 240 cells", 0.0),
    "words of an order": ([("mid", "low", "high")[i % 3] for i in range(ROWS)], "one_hot",
                          'categories.x = ["low", "mid", "high"]', None),
    "leading zeros": ([f"{i % 30:03}" for i in range(ROWS)], "one_hot", "begins with a 0", None),
    "a minus in brackets": (_of("(#,200.50)", "#,100.50"), "number", "", 10100.5),
    "a minus in brackets around money": (_of("$(#.50)", "$#.50"), "number", "", 10.5),
    "a mathematical minus": (_of("−#.5", "−1#.5"), "number", "", -110.5),
    "a minus behind": (_of("#,25", "#,50-"), "number:1.234,5", "", -10.5),
    "narrow spaces": (_of("#\u2009100.5", "#\u202f100"), "number:1 234.5", "", 10100.0),
    "spaces that break no line": (_of("#\u00a0100,5", "#,5"), "number:1 234,5", "", 10.5),
    "a typographic apostrophe": (_of("#’100.5", "#.5"), "number:1'234.5", "", 10.5),
    "per mille": (_of("#.5 ‰", "#‰"), "number", "", 10.0),
    "thousands and millions": (_of("#.5M", "#k"), "number", "read as thousands and millions", 10_000.0),
    "millions in words": (_of("#,5 Mio. €", "# Tsd. €"), "number:1.234,5", "read as", 10_000.0),
    "metres are no minutes": (_of("#.5 m", "# m"), "number", "", 10.0),
    "hours and minutes": (_of("2h #m", "30 min"), "time", "", 0.5 / 24),
    "durations of ISO 8601": (_of("PT2H#M", "P1DT12H"), "time", "", 1.5),
    "durations of clocks": (_of("1:02:03", "6:00:00"), "time", "", 0.25),
    "durations in German": (_of("2 Std. 15 Min.", "1 Tag 6 Stunden"), "time", "", 1.25),
    "twelve hours": (_of("9:30 PM", "12:00 a.m."), "time", "", 0.0),
    "no hour of twelve": (_of("13:30 PM", "14:00 PM"), "ordinal", "", None),
    "Uhr": (_of("21.30 Uhr", "6 Uhr"), "time", "", 0.25),
    "heures": (_of("21h30", "6h00"), "time", "", 0.25),
    "months in German": (_of("3. März 2021", "1. Januar 1970"), "date:%d. %b %Y", "", 0.0),
    "months in French": (_of("12 janv. 2020", "1er févr. 1970"), "date:%d %b %Y", "", 31.0),
    "days of a month in English": (_of("May 21st, 2020", "January 2nd, 1970"), "date:%b %d, %Y", "", 1.0),
    "dates as whole numbers": ([f"1970{i % 12 + 1:02}{i % 28 + 1:02}" for i in range(ROWS)], "date:%Y%m%d",
                               "", 0.0),
    "dates and none": ([f"2024{i % 12 + 1:02}11" if i % 9 else "00000000" for i in range(ROWS)],
                       "date:%Y%m%d", "gaps, x 27", None),
    "whole numbers that are no dates": ([str(20_230_099 + i % 90) for i in range(ROWS)], None, "", None),
    "days of a spreadsheet": ([str(44_197 + i * 37 % 700) for i in range(ROWS)], None,
                              "days of a spreadsheet since 1900: it is read", 44197.0),
    "days with fractions": ([str(44_197.5 + i * 37 % 700) for i in range(ROWS)], None, "", 44197.5),
    "both limits": ([("<5", ">90", "17", "30")[i % 4] for i in range(ROWS)], "number:below=half",
                    "below a limit in 60 of 240 cells (25 %), read as half of it and numbers above", 2.5),
    **{
        f"an order: {' '.join(order)}": ([order[i * 2 % len(order)] for i in range(ROWS)], "one_hot",
                                         f"categories.x = {json.dumps(order)}", None)
        for order in (
            ("leicht", "mittel", "schwer"), ("T1", "T2", "T10"), ("1st", "2nd", "3rd"), ("I", "III", "IV"),
            ("Stage 0", "Stage 1", "Stage 2"), ("Stadium IIa", "Stadium IIb", "Stadium IV"),
            ("never", "sometimes", "often"), ("parfois", "souvent", "toujours"), ("1. Klasse", "2. Klasse",
            "10. Klasse"), ("1. low", "2. medium", "3. high"),
        )
    },
    "constant": (["7"] * ROWS, "", "never varies", None),
    **{
        f"the date {text}": ([text, text.replace("1970", "1972")] * (ROWS // 2), f"date:{how}", "", days)
        for text, how, days in (
            ("18 de julio de 1970", "%d %b %Y", 198.0), ("18 maj 1970", "%d %b %Y", 137.0),
            ("18 października 1970", "%d %b %Y", 290.0), ("Saturday, 18 July 1970", "%d %b %Y", 198.0),
            ("mar. 14 juil. 1970", "%d %b %Y", 194.0), ("Sa, 18.07.1970", "%d.%m.%Y", 198.0),
            *((f"{day} 18 July 1970", "%d %b %Y", 198.0) for day in WEEKDAYS),
            ("18. 7. 1970", "%d.%m.%Y", 198.0), ("1970. 7. 18.", "%Y.%m.%d", 198.0),
            ("18JUL1970:12:00:00", "%d%b%Y %H:%M:%S", 198.5), ("1970-W29", "%G-W%V-%u", 193.0),
            ("1970-W29-6", "%G-W%V-%u", 198.0), ("18.07.1970, 12:00 Uhr", "%d.%m.%Y %H:%M", 198.5),
            ("1970-07-18 12:00:00 UTC", "%Y-%m-%d %H:%M:%S%z", 198.5),
            ("19700718T120000", "%Y%m%dT%H%M%S", 198.5),
            ("1970-07-18 12:00:00 +0200", "%Y-%m-%d %H:%M:%S%z", 198 + 10 / 24),
            ("19700718120000", "%Y%m%d%H%M%S", 198.5), ("197007181200", "%Y%m%d%H%M", 198.5),
        )
    },
    "lakhs": (_of("₹ 1,#,200.50", "₹ #,200"), "number", "", 10_200.0),
    "dollars of a country": (_of("R$ #.200,5", "R$ #"), "number:1.234,5", "", 10.0),
    "a dash for cents": (_of("Fr. 1'2#.–", "Fr. #.50"), "number:1'234.5", "", 10.5),
    "a unit with a power": (_of("#.5 x10^9/L", "# x10^9/L"), "number", "", 10.0),
    "exponents group no thousands": ([f"1,{i + 210}e+02" for i in range(ROWS)], "number:1.234,5", "", 121.0),
    "at most a limit": (_of("#,25", "≤ 0,5"), "number:1.234,5:below=half", "read as half of it", 0.25),
    "two codes below": ([("-99", "-98", *MIXED)[i % 30] for i in range(ROWS)], None,
                              "is -99 or -98 in 16", None),
    "two codes above": ([("8", "88", "99")[i % 3] if i % 5 else str(i % 4) for i in range(ROWS)], None,
                        "is 99 or 88 in", None),
    "nines behind a point": ([("99.9", *MIXED)[i % 30] for i in range(ROWS)][:1] * 9
                             + [f"3{i % 7}.{i % 9}" for i in range(ROWS - 9)], None, "is 99.9 in 9", None),
    "the least of 32 bits": ([("-2147483648", *MIXED)[i % 30] for i in range(ROWS)], None,
                              "is -2147483648", None),
    "the first day of a century": (
        [f"2024-03-{i % 28 + 1:02}" if i % 9 else "1900-01-01" for i in range(ROWS)], "date:%Y-%m-%d",
        "1900-01-01 apart from all others, which may stand for none: encode.x", None),
    "a first day with hours": (
        [f"2024-03-{i % 28 + 1:02} 10:00" if i % 9 else f"1900-01-01 0{i % 8}:00" for i in range(ROWS)],
        "date:%Y-%m-%d %H:%M", "99:99, 1900-01-01 apart from all others, which", None),
    "a first day among others": ([f"{(i + 30) % 90 + 1870}-01-01" for i in range(ROWS)], "date:%Y-%m-%d", "",
                                 -25567.0),
    "no weekday before a date": ([f"{i % 28 + 1}.07.2024" if i != 5 else "before 18.07.1970"
                                  for i in range(ROWS)],
                                 "date:%d.%m.%Y", "once empty.x lists its 1 other text", None),
    "words before dates": (_of("after 18.07.1970", "before 18.07.1970"), "ordinal", "", None),
    "X and nothing": (["X" if i % 3 else "" for i in range(ROWS)], "one_hot:missing",
                      "holds one value, and none in 80 of 240 rows (33 %), which may mean no", 0.0),
    "1 and nothing": (["1" if i % 3 else "" for i in range(ROWS)], "one_hot:missing", "and none in 80", 0.0),
    "one value in one row": (["1", *[""] * (ROWS - 1)], "", "never varies", None),
    "account numbers": ([str(10**11 + i * 7919 % 240 * 10**6) for i in range(ROWS)], "",
                              "another whole number", None),
    "IBAN in small letters": ([f"de{i % 90 + 10}500105175407{i:06}" for i in range(ROWS)], "",
                              "account numbers", None),
    "classes of years": (
        [("90 bis 120 Jahre", "18 bis 24 Jahre", "1 bis 9 Jahre")[i % 3] for i in range(ROWS)],
                         "one_hot", 'categories.x = ["1 bis 9 Jahre", "18 bis', None),
    "pressure": ([f"{i % 40 + 100}/{i % 31 + 60} mmHg" for i in range(ROWS)], "", "two numbers", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", thinned(((kind,) for kind in KINDS), 3))
def test_each_kind_is_known(tmp_path: Path, kind: str) -> None:
    cells, encode, words, first = KINDS[kind]
    settings, found, table = _written(tmp_path, {"id": _ids(), "x": cells, "y": MIXED})
    decide = "\n".join(found["decide"])
    assert words in decide
    assert ("x" in settings["columns"]) == (encode != "")
    assert ("left out: x" in decide) == (encode == "")
    assert settings.get("encode", {}).get("x") == (encode or None)
    if first is not None:
        assert table.features[0, 0] == first


def test_what_stands_for_none_is_empty_and_a_mean(tmp_path: Path) -> None:
    cells = [("-999", *MIXED)[i % 30] for i in range(ROWS)]
    settings, _, table = _written(tmp_path, {"id": _ids(), "x": cells, "y": MIXED})
    assert (settings["empty"], settings["missing"]) == ({"x": ["-999"]}, "mean")
    assert table.features[0, 0] == np.mean([float(cell) for cell in cells if cell != "-999"])
    again = load_description(tmp_path / "own.toml").model_copy(update={"empty": {}})
    assert read_party_table(again).features[0, 0] == -999


@pytest.mark.parametrize(
    ("written", "settings"),
    [
        ({"sep": ";", "encoding": "cp1252"}, {"delimiter": ";", "encoding": "cp1252"}),
        ({"sep": "\t"}, {"delimiter": "\t"}),
        ({"sep": "|", "encoding": "utf-16"}, {"delimiter": "|", "encoding": "utf-16"}),
        ({"encoding": "utf-8-sig"}, {}),
        ({"index": True}, {"id_column": "column 1"}),
    ],
)
def test_how_a_file_is_written_is_found(tmp_path: Path, written: Document, settings: Document) -> None:
    found, _, table = _written(tmp_path, {"Straße": _of("1,5", "#,25"), "y": MIXED}, **written)
    assert {name: found.get(name) for name in settings} == settings
    assert [c.name for c in table.columns] == ["Straße", "y"]
    assert table.features[1, 0] == 1.5


@pytest.mark.parametrize("written", first(["{}", "{} mg/m2", "{} kg", "{}kg", "EUR {}"], 2))
def test_a_placeholder_is_empty_with_a_decimal_comma_and_a_unit_too(tmp_path: Path, written: str) -> None:
    cells = [written.format(f"{i % 90 + 10},5" if i % 10 else "999,0") for i in range(ROWS)]
    settings, _, table = _written(tmp_path, {"id": _ids(), "x": cells, "y": MIXED})
    assert settings["empty"] == {"x": ["999"]}
    assert table.features[:, 0].max() == 99.5


def test_a_limit_is_no_placeholder(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("id,x\na,<0.5 mg\nb,0.5 mg\nc,2 mg\n")
    encode, empty = {"x": "number:below=half"}, {"x": ("0.5",)}
    read = read_party_table(PartyFile(file=tmp_path / "own.csv", encode=encode, empty=empty, missing="mean"))
    assert read.features[[0, 2], 0].tolist() == [0.25, 2.0]
    assert read.features[1, 0] not in (0.25, 0.5)


@pytest.mark.parametrize("name", ["Razem", "Итого", "Somme :", "Mittelwert"])
def test_rows_of_sums_are_known_in_other_languages(tmp_path: Path, name: str) -> None:
    _, found, _ = _written(tmp_path, {"id": [*_ids()[:-1], name], "x": MIXED})
    assert "id calls 1 of 240 rows (0.42 %) a total" in "\n".join(found["decide"])


def test_row_names_of_r_have_no_header(tmp_path: Path) -> None:
    rows = [f'"{i}" {i % 7}.5 "{"ab"[i % 2]}"' for i in range(1, 50)]
    (tmp_path / "own.csv").write_text("\n".join(['"x" "group"', *rows, ""]))
    assert describe(tmp_path / "own.csv", tmp_path / "own.toml")["columns"] == ["x", "group"]
    table = read_party_table(load_description(tmp_path / "own.toml"))
    assert table.features[0].tolist() == [1.5, 1]
    assert table.ids[0] == b"1"


@pytest.mark.parametrize("last", ["", "3"])
def test_a_comma_that_ends_rows_moves_no_name(tmp_path: Path, last: str) -> None:
    """A cell in one of the last columns makes the first one that of row names, as of R."""
    rows = [f"r{i},{i % 7}.5,{i % 5}," for i in range(1, 60)]
    (tmp_path / "own.csv").write_text("\n".join(["id,age,dose", *rows[:-1], rows[-1] + last, ""]))
    found = describe(tmp_path / "own.csv", tmp_path / "own.toml")
    assert found["columns"] == (["age", "dose"] if not last else ["id", "age"])
    table = read_party_table(load_description(tmp_path / "own.toml")) if not last else None
    assert table is None or (table.features[0].tolist(), table.ids[0]) == ([1.5, 1], b"r1")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Export of a clinic,,,", "Of today,,,"], "names 1 of 4 columns: delete the lines above"),
        (["Export,Unnamed: 1,Unnamed: 2,Unnamed: 3"], "names 1 of 4 columns: delete the lines above"),
        (["sep=,"], "its first line tells a spreadsheet the delimiter: delete this line"),
    ],
)
def test_a_line_above_the_header_is_named(tmp_path: Path, lines: list[str], words: str) -> None:
    rows = [f"{i},{i % 7}.5,{i % 5},{'ab'[i % 2]}" for i in range(60)]
    file = tmp_path / "own.csv"
    file.write_text("\n".join([*lines, "id,age,dose,sex", *rows, ""]))
    with pytest.raises(DataError, match=words):
        describe(file, None)
    file.write_text("\n".join(["id,age,dose,sex", *rows, ""]))
    assert describe(file, None)["columns"] == ["age", "dose", "sex"]


def test_texts_that_differ_by_case_or_a_space_are_named(tmp_path: Path) -> None:
    cells = {"id": _ids(), "x": MIXED, "group": _of("North", "north "), "other": _of("A+", "A-")}
    _, words, _ = _written(tmp_path, cells)
    (line,) = (line for line in words["decide"] if "case" in line)
    assert line.startswith("group holds 2 texts, 1 without differences in case, spaces, marks")


def test_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    settings, _, table = _written(tmp_path, {"x": MIXED, "y": MIXED[::-1]})
    assert settings["id_column"] == "row number"
    assert table.ids[:2].tolist() == [b"1", b"2"]


def test_a_repeated_id_is_no_id(tmp_path: Path) -> None:
    settings, words, _ = _written(tmp_path, {"person_id": [*_ids()[:-1], "r0"], "x": MIXED})
    assert (settings["id_column"], settings["columns"]) == ("row number", ["x"])
    assert any("repeats an earlier id or is empty in 1 of 240 rows" in line for line in words["decide"])


def test_functions_of_other_columns_and_repeated_rows_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cm, kg = rng.normal(170, 9, ROWS).round(), rng.normal(75, 12, ROWS).round()
    income = rng.lognormal(8, 1, ROWS)
    cells = {
        "cm": cm,
        "kg": kg,
        "bmi": (kg / (cm / 100) ** 2).round(1),
        "income": income,
        "monthly": income / 12,
        "alone": rng.normal(size=ROWS),
    }
    frame = pd.DataFrame(cells)
    frame.iloc[-1] = frame.iloc[0]
    _, words, _ = _written(tmp_path, {"id": _ids(), **frame})
    functions = [line.split(":")[0] for line in words["decide"] if "function" in line]
    assert functions == ["bmi is nearly a function of cm, kg", "monthly is nearly a function of income"]
    assert any("repeat an earlier row in 1 of 240 rows" in line for line in words["decide"])
    _, words, _ = _written(tmp_path / "new", {"id": _ids(), **pd.concat([frame[:120]] * 2)})
    assert any("repeat an earlier row in 120 of 240 rows (50 %)" in line for line in words["decide"])


def test_counts_are_of_the_whole_file_and_advice_is_taken(tmp_path: Path) -> None:
    """A CSV file of several blocks, with its only other unit in the last one."""
    cells = [f"{i % 977 / 8:.2f} mg" for i in range(60_000)]
    columns = {"x": [*cells[:-1], "<3 mg"], "y": [*cells[:-1], "3 µg"], "z": range(60_000)}
    _, words, _ = _written(tmp_path, columns)
    assert any("limit in 1 of 60,000 cells" in line for line in words["decide"])
    assert any("y holds numbers in 2 units, mg, µg" in line for line in words["decide"])


def test_nothing_is_asked_of_what_is_left_out(tmp_path: Path) -> None:
    codes = ["", *(f"code{i}" for i in range(1, ROWS))]
    cells = {"id": _ids(), "a": MIXED, "code": codes}
    settings, words, _ = _written(tmp_path, cells)
    assert "missing" not in settings
    assert [line.partition(" holds")[0] for line in words["decide"]] == ["left out: code"]


def test_gaps_beside_an_empty_column_are_filled(tmp_path: Path) -> None:
    cells = {"id": _ids(), "a": ["", *MIXED[1:]], "none": [""] * ROWS}
    settings, words, table = _written(tmp_path, cells)
    assert settings["missing"] == "mean"
    assert settings["columns"] == ["a"]
    assert table.features.shape == (ROWS, 1)
    assert any(line.startswith("1 of 240 rows") and "a 1" in line for line in words["decide"])


@pytest.mark.parametrize("name", ["dup", "empty", "ragged"])
def test_a_refusal_names_the_file(tmp_path: Path, name: str) -> None:
    texts = {"dup": "id,a,a\n1,2,3\n", "empty": "", "ragged": "id,a\n1,2\n2,3,4\n"}
    file = tmp_path / f"{name}.csv"
    file.write_text(texts[name])
    with pytest.raises(DataError, match=f"^{name}.csv: "):
        describe(file, None)


@pytest.mark.parametrize(("kinds", "why"), [(1, "x never varies"), (41, "x makes 41 columns")])
def test_what_is_no_table_is_refused(tmp_path: Path, kinds: int, why: str) -> None:
    (tmp_path / "own.csv").write_text("id,x\n" + "".join(f"r{i},{i % kinds:03d}\n" for i in range(99)))
    with pytest.raises(DataError, match=f"no column can be read as numbers or categories: {why}"):
        describe(tmp_path / "own.csv", None)
    (tmp_path / "own.toml").write_text("")
    with pytest.raises(ConfigError, match="exists: choose another name"):
        describe(tmp_path / "own.csv", tmp_path / "own.toml")
    with pytest.raises(ConfigError, match="with --write: give a table"):
        describe(tmp_path / "own.toml", tmp_path / "new.toml")


def test_a_parquet_file_of_pandas(tmp_path: Path) -> None:
    since = pa.array(range(ROWS), pa.timestamp("s"))
    table = {"id": _ids(), "since": since, "flag": [True, False] * (ROWS // 2),
             "kind": pa.array(["a", "b", "c"] * (ROWS // 3)).dictionary_encode()}  # fmt: skip
    pq.write_table(pa.table(table), tmp_path / "own.parquet")
    describe(tmp_path / "own.parquet", tmp_path / "own.toml")
    spec = load_description(tmp_path / "own.toml")
    assert spec.encode == {"since": "date", "kind": "one_hot"}
    assert read_party_table(spec).features.shape == (ROWS, 5)


MESSY = {
    messytables.hospital: (
        {"Fall", "Diagnose", "Hb", "Blutdruck", "Station"},
        {"CRP": "number:1.234,5:below=half"},
    ),
    messytables.bank: (set(), {"balance": "number", "rate": "number"}),
    messytables.insurer: ({"country"}, {"since": "date"}),
}


@pytest.mark.parametrize("made", first(MESSY), ids=lambda made: made.__name__)
def test_messy_tables_are_described(tmp_path: Path, made: Any) -> None:
    left, encode = MESSY[made]
    file = made(tmp_path, 5_000)
    words = describe(file, tmp_path / "own.toml")
    check(tmp_path / "own.toml", lambda checks: None)
    assert left == set(words["left_out"])
    assert encode.items() <= load_description(tmp_path / "own.toml").encode.items()
