"""What the check advises is done, and the next command reads the table."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vflens.cli.decide.audit_flags import kinds, names
from vflens.experiments.evidence.thresholds import read_threshold
from vflens.names import listed
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, read_party_table
from vflens.tables.own_check.flaw import Flaw, TableCheck

ROWS = 3000


def _file(folder: Path, columns: Mapping[str, list[str]]) -> Path:
    return _rows(folder, [list(columns), *zip(*columns.values(), strict=True)])


def _rows(folder: Path, rows: list[Any]) -> Path:
    with (folder / "own.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return folder / "own.csv"


def _check(file: Path, **settings: Any) -> TableCheck:
    found = check_party_table(PartyFile(file=file, **settings))
    assert found is not None
    return found


def _of(found: TableCheck, column: str) -> Flaw:
    (flaw,) = (flaw for flaw in found.flaws if flaw.column == column)
    return flaw


IDS = [f"r{i}" for i in range(ROWS)]
NUMBERS = [str(i * 37 % 1009 / 8) for i in range(ROWS)]
WORDS = [("red", "blue", "green")[i % 3] for i in range(ROWS)]


def _flags(check: TableCheck) -> dict[str, Any]:
    """The settings that the flags of a check stand for, as ``vflens audit`` reads them."""
    encode = [flag for flaw in check.flaws if (flag := flaw.flag).startswith("--encode")]
    settings: dict[str, Any] = {"encode": kinds([shlex.split(flag)[1] for flag in encode])}
    line = check.lines()[-1]
    if "(audit: --columns " in line:
        flag = line.split("(audit: ")[1].removesuffix(")")
        settings["columns"] = tuple(names(shlex.split(flag)[1]) or ())
    return settings


@pytest.mark.parametrize(
    "name",
    ["income, monthly", 'the "real" one', " spaced ", "a=b", "-dash", "it's", "$HOME", "a, b=c", "ä;ö", "#"],
)
def test_any_name_of_a_column_can_be_chosen(tmp_path: Path, name: str) -> None:
    file = _file(tmp_path, {"id": IDS, name: NUMBERS, f"{name}2": WORDS, "same": ["7"] * ROWS})
    found = _check(file)
    settings = _flags(found)
    assert settings == {"columns": (name, f"{name}2"), "encode": {f"{name}2": "one_hot"}}
    assert read_party_table(PartyFile(file=file, **settings)).features.shape == (ROWS, 4)


def test_a_list_of_names_is_read_as_it_is_written() -> None:
    written = ["a", "", 'b "c"', "d, e", " f ", "g\nh", '"', "=", "-x"]
    assert names(listed(written)) == written
    assert names(" a ,b") == ["a", "b"]
    assert names(None) is None


def test_a_threshold_names_any_column() -> None:
    for name in ("income, monthly", "a > 5 % of", "x within 3", "line\nend", 'the "real" one'):
        quoted = name.replace('"', '""')
        assert read_threshold(f'"{quoted}" within 5 > 10 %').column == name
    assert read_threshold("line\nend > 10 %").column == "line\nend"
    assert read_threshold("income within 5 > 10 %").column == "income"


@pytest.mark.parametrize(
    "header", [["", "a", "b"], ["a", "", "b", ""], ["Unnamed: 0", "a", "b"], ["", "a\nb", "", "Unnamed: 0"]]
)
def test_a_column_without_a_name_is_named_by_its_place_and_left_out(
    tmp_path: Path, header: list[str]
) -> None:
    fields = [name.replace("\n", " ") for name in ("id", *header)]
    columns = [IDS, *([str(i * (j + 3) % 89) for i in range(ROWS)] for j in range(len(header)))]
    file = _rows(tmp_path, [fields, *zip(*columns, strict=True)])
    found = _check(file)
    flaws = [flaw for flaw in found.flaws if flaw.kind == "nameless"]
    places = [i for i, name in enumerate(fields, 1) if name in ("", "Unnamed: 0")]
    assert [int(re.match(r"column (\d+) has no name", flaw.sentence)[1]) for flaw in flaws] == places  # type: ignore[index]
    settings = _flags(found)
    assert settings["columns"] == tuple(name for name in fields[1:] if name not in ("", "Unnamed: 0"))
    assert len(read_party_table(PartyFile(file=file, **settings)).ids) == ROWS
    packed = tmp_path / "own.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_party_table(PartyFile(file=packed)).features.shape == (ROWS, len(header))


def test_a_nameless_index_can_identify_the_rows(tmp_path: Path) -> None:
    file = _rows(tmp_path, [["", "a"], *zip(IDS, NUMBERS, strict=True)])
    assert read_party_table(PartyFile(file=file, id_column="column 1")).ids[0] == b"r0"


LABELS = {
    "a mark": (["<=50K", ">50K", "<=50K.", ">50K."], 2),
    "case": (["yes", "Yes", "no", "no "], 2),
    "numbers": (["0", "0.0", "1", "01"], 2),
    "a decimal comma": (["0", "0,0", "1,50", "1.5"], 2),
    "spaces and hyphens": (["self employed", "self-employed", "Self_Employed", "none"], 2),
    "forms of letters": (["ｎｏ", "no", "straße", "STRASSE"], 2),
}


@pytest.mark.parametrize("case", LABELS)
def test_classes_that_are_written_in_several_ways_are_named(tmp_path: Path, case: str) -> None:
    texts, joined = LABELS[case]
    file = _file(tmp_path, {"id": IDS, "a": NUMBERS, "y": [texts[i % 4] for i in range(ROWS)]})
    flaw = _of(_check(file, label_column="y"), "y")
    assert flaw.numbers == {"classes": 4, "joined": joined}
    assert flaw.sentence.startswith(f"y holds 4 classes, {joined} without differences in case")
    assert not any(text in str(flaw) for text in texts if len(text) > 2)


@pytest.mark.parametrize(
    "texts",
    [["<=50K", ">50K"], ["A", "A+", "A-"], ["-1", "1"], ["1.5 l", "15 l"], ["C", "C#", "C++"], ["a/b", "ab"],
     ["0", "1"], ["1-2", "12"], ["?", "!"], ["1", "1,000"]],
)  # fmt: skip
def test_other_classes_are_left_alone(tmp_path: Path, texts: list[str]) -> None:
    file = _file(tmp_path, {"id": IDS, "a": NUMBERS, "y": [texts[i % len(texts)] for i in range(ROWS)]})
    assert _check(file, label_column="y").flaws == ()


@pytest.mark.parametrize(
    "how",
    ["{d:02}/{m:02}/{y:02}", "{m:02}/{d:02}/{y:02}", "{y:02}-{m:02}-{d:02}", "{d:02}.{m:02}.{y:02} 10:00"],
)
def test_years_of_two_digits_are_asked_about(tmp_path: Path, how: str) -> None:
    days = [how.format(d=i % 28 + 1, m=i % 12 + 1, y=45 + i % 55) for i in range(ROWS)]
    flaw = _of(_check(_file(tmp_path, {"id": IDS, "x": days})), "x")
    assert (flaw.kind, flaw.refused, flaw.flag) == ("two-digit years", True, "")
    assert flaw.remedy.startswith("of which century? Write four, or name the first possible year, as in ")
    kind = json.loads(flaw.remedy.partition(" = ")[2])
    spec = PartyFile(file=tmp_path / "own.csv", encode={"x": kind.replace("1930", "1945")})
    (width,) = np.ptp(read_party_table(spec).features, axis=0)
    assert 19_000 < width < 20_100  # 1945 to 1999
    assert not re.search(r"\d/|/\d{2}[^9]", flaw.sentence.replace("9", ""))


def test_a_kind_is_proposed_only_if_it_reads_the_whole_column(tmp_path: Path) -> None:
    """The count is that of all cells, and the advice says what comes first."""
    cells = [f"{i % 900 / 10:.1f}".replace(".", ",") if i % 40 else f"ca. {i}" for i in range(ROWS)]
    found = _check(_file(tmp_path, {"id": IDS, "crp": cells}))
    flaw = _of(found, "crp")
    assert str(flaw) == (
        "crp holds numbers as text, such as ca. 9, but no number as 1.234,5 in data row 1 and 74 more: "
        'correct or empty these cells, then set encode.crp = "number:1.234,5"'
    )
    mended = [cell if "ca." not in cell else "0,2" for cell in cells]
    again = _check(_file(tmp_path, {"id": IDS, "crp": mended}))
    assert _flags(again) == {"encode": {"crp": "number:1.234,5"}}
    assert read_party_table(PartyFile(file=tmp_path / "own.csv", **_flags(again))).features.shape == (ROWS, 1)
