"""What programs and people write for a missing number: Stata's ".", and -9 or -99 among a few codes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table

ROWS = 120
CODES = [str(1 + i % 5) for i in range(ROWS)]
SIZES = [f"{i * 37 % 97}.5" for i in range(ROWS)]


def _with(cells: list[str], *others: str, every: int = 9) -> list[str]:
    return [others[i // every % len(others)] if i % every == 0 else cell for i, cell in enumerate(cells)]


FOUND: dict[str, tuple[list[str], list[str]]] = {
    "Stata's mark among codes": (_with(CODES, "."), ["."]),
    "more marks than numbers": (_with(["."] * ROWS, "1", "2", "3.5"), ["."]),
    "Stata's kinds of missing": (_with(SIZES, ".", ".a", ".z"), [".", ".a", ".z"]),
    "SAS": (_with(["._", ".A"] * (ROWS // 2), "1", "2"), [".A", "._"]),
    "strokes": (_with(["-"] * ROWS, *SIZES[:9], every=3), ["-"]),
    "two points": (_with([".."] * ROWS, *SIZES[:9], every=3), [".."]),
    "-99 among five codes": (_with(CODES, "-99"), ["-99"]),
    "-9 once": ([*CODES[:50], "-9", *CODES[51:]], ["-9"]),
    "-8 and -9": (_with(CODES, "-9", "-8"), ["-9", "-8"]),
    "-1 beside -8 and -9": (_with(["0", "1", "2"] * 40, "-9", "-8", "-1"), ["-9", "-8", "-1"]),
    "-999 among two": (_with(["0", "1"] * 60, "-999"), ["-999"]),
    "-9.0": (_with([f"{c}.0" for c in CODES], "-9.0"), ["-9"]),
    "99 among five codes": (_with(CODES, "99"), ["99"]),
    "-9 and -8 of ages": (_with([str(18 + i % 70) for i in range(ROWS)], "-9", "-8"), ["-9", "-8"]),
}
FINE: dict[str, list[str]] = {
    "a scale around 0": [str(i % 3 - 1) for i in range(ROWS)],
    "degrees": [str(i % 19 - 9) for i in range(ROWS)],
    "9 of 10": [str(i % 10) for i in range(ROWS)],
    "a degree below": _with([str(i % 3) for i in range(ROWS)], "-1"),
    "two numbers": [("0", "99")[i % 2] for i in range(ROWS)],
}


@pytest.mark.parametrize("kind", FOUND)
def test_they_are_named_and_become_empty(tmp_path: Path, vflens: Run, kind: str) -> None:
    cells, marks = FOUND[kind]
    rows = [f'{i},"{cell}",{i * 7 % 31}.5' for i, cell in enumerate(cells)]
    (tmp_path / "own.csv").write_text("\n".join(["id,x,y", *rows, ""]))
    for line in ("check own.csv", "check own.csv --write own.toml"):
        parts = [tmp_path / part if part.startswith("own") else part for part in line.split()]
        ended = vflens(*parts)
        assert ended.code in (0, 3), ended.err
        assert all(f'"{mark}"' in ended.out for mark in marks), ended.out
    written: dict[str, Any] = tomllib.loads((tmp_path / "own.toml").read_text())
    assert sorted(written["empty"]["x"]) == sorted(marks)
    assert "x" not in written.get("encode", {})
    assert "x" in written["columns"]
    assert vflens("check", tmp_path / "own.toml").code == 0


@pytest.mark.parametrize("kind", FINE)
def test_other_codes_are_left_alone(tmp_path: Path, kind: str) -> None:
    (tmp_path / "own.csv").write_text(
        "\n".join(["id,x,y", *(f"{i},{cell},{i}.5" for i, cell in enumerate(FINE[kind])), ""])
    )
    found = check_party_table(PartyFile(file=tmp_path / "own.csv"))
    assert found is not None
    assert not [flaw for flaw in found.flaws if flaw.column == "x"]


def test_a_mark_beside_words_is_a_category(tmp_path: Path) -> None:
    cells = [("male", "female", ".")[i % 3] for i in range(ROWS)]
    (tmp_path / "own.csv").write_text(
        "\n".join(["id,x,y", *(f"{i},{cell},{i}.5" for i, cell in enumerate(cells)), ""])
    )
    found = check_party_table(PartyFile(file=tmp_path / "own.csv"))
    assert found is not None
    assert [flaw.kind for flaw in found.flaws if flaw.column == "x"] == ["text"]
