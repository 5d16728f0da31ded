"""A CSV file without names of columns: found, said without a cell, and read by places where asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vflens.config import load_description
from vflens.errors import DataError
from vflens.experiments.release.file import OwnersTable
from vflens.experiments.run.check import check
from vflens.experiments.run.own_tables import describe
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, column_names, read_party_table
from vflens.tables.written.header import holds_cells

ROWS = 80
CELLS: dict[str, Callable[[int, np.random.Generator], str]] = {
    "age": lambda i, rng: str(rng.integers(18, 90)),
    "sex": lambda i, rng: "MF"[rng.integers(2)],
    "when": lambda i, rng: f"{rng.integers(1, 28):02}.03.20{rng.integers(10, 22)}",
    "id": lambda i, rng: f"P{1000 + i}",
    "word": lambda i, rng: "".join("abcdefgh"[k] for k in rng.integers(0, 8, 7)),
    "dose": lambda i, rng: f"{rng.uniform(0, 99):.2f}",
    "comma": lambda i, rng: f"{rng.uniform(0, 99):.2f}".replace(".", ","),
    "gap": lambda i, rng: "",
}


def _rows(columns: str, seed: int = 3) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[CELLS[name](i, rng) for name in columns.split()] for i in range(ROWS)]


@pytest.mark.parametrize(
    "columns",
    ["age sex", "id age when", "word age", "sex sex", "comma sex when", "gap age sex", "id id", "word when"],
)
def test_a_first_row_of_cells_is_known_and_names_are_none(columns: str) -> None:
    for seed in range(100):  # among them some whose first row has the least or the largest number
        rows = _rows(columns, seed)
        assert holds_cells(rows[0], rows[1:]), seed
        assert not holds_cells(columns.split(), rows)
        assert not holds_cells([f"{name}_1" for name in columns.split()], rows)


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("country 2019 2020 2021", "word dose dose dose"),
        ("0 1 2 3 4", "age age age age age"),
        ("x 10 25 50 100", "id dose dose dose dose"),
        ("region 2020", "word age"),
        ("M q1 q2", "sex age age"),
    ],
)
def test_years_places_and_codes_are_names(names: str, columns: str) -> None:
    assert not holds_cells(names.split(), _rows(columns))


def _file(folder: Path, mark: str = ",") -> Path:
    rows = [[f"P{i:04}", str(20 + i * 37 % 61), "MF"[i % 2], f"Ort{i % 7}"] for i in range(ROWS)]
    rows[0][1:3] = ["77", "M"]
    (folder / "own.csv").write_text("\n".join([*map(mark.join, rows), ""]))
    return folder / "own.csv"


@pytest.mark.parametrize("read", [column_names, OwnersTable, lambda f: check_party_table(PartyFile(file=f))])
@pytest.mark.parametrize("mark", ",;")
def test_no_reader_prints_a_cell_of_the_first_row(tmp_path: Path, read: object, mark: str) -> None:
    assert callable(read)
    with pytest.raises(DataError, match=r"its (first line holds cells|header is one column)") as refusal:
        read(_file(tmp_path, mark))
    assert not any(cell in str(refusal.value) for cell in ("P0000", "77", "Ort0"))


@pytest.mark.parametrize("mark", ",;\t")
def test_what_check_writes_reads_every_row(tmp_path: Path, mark: str) -> None:
    found = describe(_file(tmp_path, mark), tmp_path / "own.toml")
    assert any("the first line holds cells like those below" in line for line in found["decide"])
    check(tmp_path / "own.toml", lambda checks: None)
    spec = load_description(tmp_path / "own.toml")
    table = read_party_table(spec)
    assert (spec.header, spec.id_column, table.ids[0], len(table.ids)) == (False, "column 1", b"P0000", ROWS)
    assert table.features[0, 0] == 77
    believed = spec.model_copy(update={"header": True, "id_column": "P0000", "columns": ("77",)})
    assert len(read_party_table(believed.model_copy(update={"encode": {}})).ids) == ROWS - 1


@pytest.mark.parametrize(("rows", "words"), [(9, "needs 10 rows"), (20, "needs known = 10"), (52, "")])
def test_a_table_too_small_for_an_audit_says_so(tmp_path: Path, rows: int, words: str) -> None:
    lines = [f"r{i},{i * 37 % 61 / 4}" for i in range(rows)]
    (tmp_path / "own.csv").write_text("\n".join(["id,x", *lines, ""]))
    lines_of = "\n".join(describe(tmp_path / "own.csv", tmp_path / "own.toml")["lines"])
    facts = check(tmp_path / "own.toml", lambda checks: None)
    assert words in lines_of
    assert words in facts.get("audit", "")
    assert ("an audit" in lines_of) == ("audit" in facts) == bool(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id^age\nr1^2\nr2^3\n", "its one column tells rows apart, or another mark than"),
        ("<html><body>\n", "it holds no rows"),
        ("id,age\nr1,2\nr2,3\n".encode("utf-16-le").decode(), "it holds zero bytes, and no text"),
    ],
)
def test_what_is_no_table_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        describe(tmp_path / "own.csv", tmp_path / "own.toml")


def test_names_that_stand_again_below_are_names(tmp_path: Path) -> None:
    half = "".join(["id,age,group\n", *(f"r%s{i},{i * 37 % 61},{'ab'[i % 2]}\n" for i in range(40))])
    (tmp_path / "own.csv").write_text(half.replace("%s", "a") + half.replace("%s", "b"))
    found = describe(tmp_path / "own.csv", tmp_path / "own.toml")
    assert found["columns"] == ["age", "group"]
    assert "age holds numbers, but text in 1 of 81 cells (1.2 %), first in data row 41" in "\n".join(
        found["decide"]
    )
