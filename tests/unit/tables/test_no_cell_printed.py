"""What a check, an audit and a refusal say of a table names rows and counts: no cell of a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Run
from thinned import first

ROWS = 120
PLAIN = [f"{0.5 + i * 37 % 97:.2f}" for i in range(ROWS)]
#: Column → the cells of two persons in it, and the other cells.
PLANTED: dict[str, tuple[list[str], list[str]]] = {
    "far above": (["83471926", "50"], PLAIN),
    "far below": (["-83471926", "50"], PLAIN),
    "seconds": (["946871926", "2145871926"], [str(1_600_000_000 + 977 * i) for i in range(ROWS)]),
    "days of a spreadsheet": (["32917", "51419"], [str(44_197 + 37 * i % 700) for i in range(ROWS)]),
    "text": (["Meierhofer", "Quendt"], PLAIN),
    "an amount": (["€ 83471926.25", "€ 7"], [f"€ {i}.50" for i in range(ROWS)]),
    "a limit": (["<83471926", ">93471926"], [f"<{i}" for i in range(ROWS)]),
    "units": (
        ["83471926 Meierhofer", "7 Quendt"],
        [f"{i} {'abcdefghijklm'[i % 13] * 4}" for i in range(ROWS)],
    ),
    "a date": (["1917-07-13", "2093-11-29"], [f"2024-03-{i % 28 + 1:02}" for i in range(ROWS)]),
    "no date": (["13/07/1917", "Quendt"], [f"2024-03-{i % 28 + 1:02}" for i in range(ROWS)]),
    "a whole date": (["19170713", "20931129"], [f"2024{i % 12 + 1:02}11" for i in range(ROWS)]),
    "a code": (["0083471926", "0093471926"], [f"{i:05}" for i in range(ROWS)]),
    "too large": (["90071992547409937", "1e400"], PLAIN),
    "categories": (["Meierhofer", "Quendt"], [("red", "blue", "green")[i % 3] for i in range(ROWS)]),
}
#: What tells a planted cell: its digits or word, or its year.
_TELLS = (
    *("8347192", "8.34719", "9347192", "94687192", "214587192", "32917", "51419", "Meierhofer", "Quendt"),
)
TELLS = (*_TELLS, "1917", "2093", "2000", "2037", "9007199254740993", "1e+400", "1e400")


@pytest.mark.parametrize("kind", first(PLANTED, 8))
@pytest.mark.usefixtures("few_defences")
def test_no_cell_of_a_person_is_printed(tmp_path: Path, vflens: Run, kind: str) -> None:
    planted, others = PLANTED[kind]
    cells = [*others[:2], planted[0], *others[2:80], planted[1], *others[80:]]
    lines = [f'{i},"{cell}",{i % 7}.5,{i % 2}' for i, cell in enumerate(cells)]
    (tmp_path / "own.csv").write_text("\n".join(["id,x,y,z", *lines, ""]))
    quick = ("--models", 1, "--rows", 20, "--known", 5, "--training", "secure", "--out", tmp_path / "a.html")
    calls: tuple[tuple[object, ...], ...] = (
        ("check", "own.csv", "--write", "own.toml"),
        ("check", "own.csv", "--json"),
        ("check", "own.toml"),
        ("audit", "own.csv", "--label", "x", *quick),
        ("audit", "own.csv", "--label", "z", "--columns", "x", "--encode", "x=date", *quick),
        ("release", "own.csv", "--id", "id", "--lambda", 1, "--out", "r.csv", "--force"),
        (
            "release",
            "own.csv",
            "--id",
            "id",
            "--encode",
            "x=number",
            "--lambda",
            1,
            "--out",
            "r.csv",
            "--force",
        ),
    )
    paths = {name: tmp_path / name for name in ("own.csv", "own.toml", "r.csv")}
    ended = [vflens(*(paths.get(str(part), part) for part in call)) for call in calls]
    printed = "\n".join(f"{one.out}{one.err}" for one in ended).replace(str(tmp_path), "")
    assert "own.csv" in printed
    assert not [tell for tell in ("Traceback", *TELLS) if tell in printed], printed
