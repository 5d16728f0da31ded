"""The check of parties' own tables in the commands: each notes it once, and refuses afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w
from commandline import Run, strict

CONSTANT = "x never varies: it holds one value: leave x out of columns"
AUDIT = ("--classes", 2, "--models", 1, "--rows", 30, "--known", 5)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"{i},1,{i * i % 31},{'ab'[i % 2]}\n" for i in range(40)]
    (tmp_path / "own.csv").write_text("id,x,y,label\n" + "".join(rows))
    return tmp_path / "own.csv"


def _experiment(table: Path, **changes: Any) -> Path:
    active = {"file": str(table), "columns": ["y"], "label_column": "label"}
    passive = {"file": str(table), "columns": ["x"]}
    settings = {"name": "own", "training": {"epochs": 1}, "out": str(table.parent / "runs"), **changes}
    text = tomli_w.dumps({**settings, "files": {"active": active, "passive": passive}})
    table.with_name("own.toml").write_text(text)
    return table.with_name("own.toml")


def test_a_run_notes_what_is_to_be_mended_once(table: Path, vflens: Run) -> None:
    ended = vflens("run", _experiment(table), "--in-process", "--json")
    assert ended.code == 0, ended.err
    assert ended.err.count(f"passive, own.csv: {CONSTANT}\n") == 1
    found = strict(ended.out)["tables"]
    assert [f["kind"] for f in found["passive"]["flaws"]] == ["constant"]
    assert found["active"]["flaws"] == []


def test_outside_a_laboratory_too(table: Path, vflens: Run) -> None:
    """Who starts all parties named their files: `vflens check` notes the same."""
    ended = vflens("run", _experiment(table, lab=False), "--in-process", "--json")
    assert ended.code == 0, ended.err
    assert ended.err.count(f"passive, own.csv: {CONSTANT}\n") == 1
    assert [f["kind"] for f in strict(ended.out)["tables"]["passive"]["flaws"]] == ["constant"]


def test_check_notes_it_of_an_experiment_and_of_a_description(table: Path, vflens: Run) -> None:
    assert f"passive, own.csv: {CONSTANT}" in vflens("check", _experiment(table)).err
    table.with_name("mine.toml").write_text('file = "own.csv"\ncolumns = ["x", "y"]\n')
    ended = vflens("check", table.with_name("mine.toml"))
    assert ended.err == f"table, own.csv: {CONSTANT}\n" + (
        'table, own.csv: without these columns: columns = ["y"] (audit: --columns y)\n'
    )
    assert "rows: 40" in ended.out


def test_all_flaws_are_noted_before_the_first_refusal(tmp_path: Path, vflens: Run) -> None:
    rows = [f"{i % 39},€ 1,0{i % 9 + 1}.03.2024\n" for i in range(40)]
    (tmp_path / "own.csv").write_text("id,money,day\n" + "".join(rows))
    ended = vflens("audit", tmp_path / "own.csv", *AUDIT, "--out", tmp_path)
    *notes, error = ended.err.splitlines()
    assert (ended.code, len(notes)) == (3, 3)
    assert error.startswith("error: ")
    for words in ("id repeats an earlier id", "encode.money = ", "encode.day = "):
        assert words in ended.err


@pytest.mark.usefixtures("few_defences")
def test_an_audit_notes_it_and_its_page_and_document_have_it(table: Path, vflens: Run) -> None:
    page = table.with_name("audit.html")
    ended = vflens("audit", table, *AUDIT, "--columns", "x,y", "--out", page, "--json")
    assert ended.code == 0, ended.err
    assert ended.err.count(CONSTANT) == 1
    assert strict(ended.out)["tables"]["your table"]["lines"][0] == CONSTANT
    assert CONSTANT in page.read_text()


def test_the_report_counts_dropped_rows_by_column(tmp_path: Path, vflens: Run) -> None:
    rows = [f"{i},{'' if i in (3, 5) else i * i % 31},{'ab'[i % 2]}\n" for i in range(40)]
    (tmp_path / "own.csv").write_text("id,x,label\n" + "".join(rows))
    file = {"file": str(tmp_path / "own.csv"), "missing": "drop_row"}
    files = {
        "active": {**file, "columns": [], "label_column": "label"},
        "passive": {**file, "columns": ["x"]},
    }
    settings = {"name": "own", "training": {"epochs": 1}, "out": str(tmp_path / "runs"), "files": files}
    (tmp_path / "own.toml").write_text(tomli_w.dumps(settings))
    ended = vflens("run", tmp_path / "own.toml", "--in-process", "--json")
    assert ended.code == 0, ended.err
    assert "passive, own.csv: 2 of 40 rows (5 %) are dropped for gaps: x 2" in ended.err
    page = Path(strict(ended.out)["report"]).read_text()
    assert page.count("rows of its file were dropped for gaps") == 1
    assert "passive: 2 of 40 rows of its file were dropped for gaps: x 2." in page
