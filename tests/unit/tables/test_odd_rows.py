"""Rows that are nobody's: sums, units; and the value that all people have."""

from __future__ import annotations

from pathlib import Path

import pytest
from thinned import thinned

from vflens.experiments.run.own_tables import describe
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table

ROWS = 240
NUMBERS = [f"{i * 37 % 101 / 8},{i * 53 % 97}" for i in range(ROWS)]


@pytest.mark.parametrize("cell", ["7", "a secret", "2024-02-29", "7,5 mg"])
def test_the_one_value_of_a_column_is_not_said(tmp_path: Path, cell: str) -> None:
    rows = [f'r{i},"{cell}",{numbers}' for i, numbers in enumerate(NUMBERS)]
    (tmp_path / "own.csv").write_text("\n".join(["id,x,a,b", *rows, ""]))
    words = describe(tmp_path / "own.csv", tmp_path / "own.toml")
    (line,) = (line for line in words["decide"] if line.startswith("left out: x"))
    assert "one value" in line
    assert cell not in "\n".join([*words["decide"], (tmp_path / "own.toml").read_text()])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Total,{},N"], "id calls 1 of 241 rows"),
        (["r,{},Zwischensumme:", "s,{},Gesamtergebnis"], "kind calls 2 of 242 rows"),
        (["Summe,{},"], "id calls 1 of 241 rows"),
    ],
)
def test_rows_of_sums_are_counted(tmp_path: Path, lines: list[str], words: str) -> None:
    rows = [f"r{i},{numbers},{'NS'[i % 2]}" for i, numbers in enumerate(NUMBERS)]
    for extra, there in ((lines, True), ([], False), (["r,{},total"] * 60, False)):
        more = [line.replace("{}", "999,99") for line in extra]
        (tmp_path / "own.csv").write_text("\n".join(["id,a,b,kind", *rows, *more, ""]))
        decide = describe(tmp_path / "own.csv", None)["decide"]
        assert [line for line in decide if "a total" in line] == [
            line for line in decide if there and line.startswith(words)
        ]
        assert any("a total: no person stands there" in line for line in decide) == there


@pytest.mark.parametrize("units", [",kg,%,", "-,10^9/l,mmHg,-", "Nr.,Jahre,°C,Wort"])
@pytest.mark.parametrize("mark", thinned([(",",), (";",)]))
def test_a_row_of_units_is_named(tmp_path: Path, units: str, mark: str) -> None:
    rows = [f"r{i},{numbers},{'NS'[i % 2]}" for i, numbers in enumerate(NUMBERS)]
    for first, there in (([units], True), ([], False), (["r,1,?,N"], False)):
        text = "\n".join(["id,a,b,kind", *first, *rows, ""])
        (tmp_path / "own.csv").write_text(text if mark == "," else text.replace(",", ";").replace(".", ","))
        decide = describe(tmp_path / "own.csv", None)["decide"]
        assert (
            any("data row 1 holds words in 2 columns of numbers, such as a, b" in d for d in decide) == there
        )


def test_a_column_without_values_is_left_out_by_the_flag_of_an_audit(tmp_path: Path) -> None:
    rows = [f"r{i},{numbers}," for i, numbers in enumerate(NUMBERS)]
    (tmp_path / "own.csv").write_text("\n".join(["id,a,b,none", *rows, ""]))
    found = check_party_table(PartyFile(file=tmp_path / "own.csv"))
    assert found is not None
    assert found.lines()[-1].endswith("(audit: --columns a,b)")
    kept = check_party_table(PartyFile(file=tmp_path / "own.csv", columns=("a", "b")))
    assert kept is not None
    assert not kept.flaws
