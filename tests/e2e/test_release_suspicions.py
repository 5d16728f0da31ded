"""``vflens release``: identifiers and formulas are named, what exists is kept, and little is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from commandline import Run
from releases import facts_of, numbers_in, table, vflens

from vflens.experiments.release.file import OwnersTable

_FIXTURES = (
    table,
    vflens,
)  # used by name
ROOT = Path(__file__).parents[2]


def test_identifiers_leave_only_on_request(vflens: Run, table: Path, tmp_path: Path) -> None:
    options = (
        table,
        "--label",
        "y",
        "--encode",
        "ordinal",
        "--lambda",
        "1",
        "--id",
        "who",
        "--out",
        tmp_path / "o.csv",
    )
    facts = facts_of(vflens, *options)
    assert not any("identifier" in w for w in facts["not_protected"])
    code, out, err = vflens(*options, "--keep-ids", "--force", "--json")
    assert code == 0
    assert pd.read_csv(tmp_path / "o.csv")["who"].tolist() == pd.read_csv(table)["who"].tolist()
    assert "can re-link the rows" in err
    assert any("re-link" in w for w in json.loads(out)["not_protected"])


HOSTILE = "=cmd|' /C calc'!A0"


def _formulas(folder: Path) -> Path:
    """A table whose header, label and identifiers hold formulas, and texts that resemble them."""
    frame = pd.DataFrame(
        {
            HOSTILE: [1.5, 2.5, 4.0, -3.0],
            "who": ["-1", "@SUM(1)", "+1 (555)", "a=b"],
            "y": ["-1", "-1e3", "=1+1", "=1+1"],
        }
    )
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def test_formulas_are_named_and_left_alone(vflens: Run, tmp_path: Path) -> None:
    common = (_formulas(tmp_path), "--label", "y", "--id", "who", "--keep-ids", "--lambda", "1")
    facts = facts_of(vflens, *common, "--out", tmp_path / "o.csv")
    words = (
        "5 names or cells of the released file begin like a formula (=, +, -, @, tab): "
        "a spreadsheet may run them, excel_safe = true in [release] of a description puts an apostrophe "
        "before each"
    )
    assert words in facts["warnings"]
    released = pd.read_csv(tmp_path / "o.csv")
    assert list(released) == [HOSTILE, "who", "y"]
    assert released["who"].tolist() == ["-1", "@SUM(1)", "+1 (555)", "a=b"]
    parquet = facts_of(vflens, *common, "--out", tmp_path / "o.parquet")
    assert not any("formula" in w for w in parquet["warnings"])


def test_excel_safe_puts_an_apostrophe_before_formulas_alone(vflens: Run, tmp_path: Path) -> None:
    common = (
        _formulas(tmp_path),
        "--label",
        "y",
        "--id",
        "who",
        "--keep-ids",
        "--lambda",
        "1",
        "--seed",
        "a",
    )
    facts = facts_of(vflens, *common, "--excel-safe", "--out", tmp_path / "safe.csv")
    assert any(
        w.startswith("5 names or cells") and w.endswith("each has an apostrophe before it")
        for w in facts["warnings"]
    )
    released = pd.read_csv(tmp_path / "safe.csv")
    assert list(released) == [f"'{HOSTILE}", "who", "y"]
    assert released["who"].tolist() == ["-1", "'@SUM(1)", "'+1 (555)", "a=b"]
    assert released["y"].tolist() == ["-1", "-1e3", "'=1+1", "'=1+1"]
    facts_of(vflens, *common, "--out", tmp_path / "plain.csv")
    assert pd.read_csv(tmp_path / "plain.csv")[HOSTILE].tolist() == released[f"'{HOSTILE}"].tolist()
    ended = vflens(*common, "--excel-safe", "--out", tmp_path / "o.parquet")
    assert (ended.code, "excel_safe: no spreadsheet runs what" in ended.err) == (2, True)


def test_excel_safe_keeps_the_classifier(vflens: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    table = numbers_in(tmp_path, x, np.where(x[:, 0] > 0, "a", "b"))
    table.write_text(table.read_text().replace("c0", "=c0", 1))
    options = ("--label", "y", "--mechanism", "correlated", "--m", "0.01", "--excel-safe")
    facts = facts_of(vflens, table, *options, "--out", tmp_path / "o.csv")
    assert facts["classifier"]["preserved"]
    assert list(pd.read_csv(tmp_path / "o.csv")) == ["'=c0", "c1", "y"]


def test_a_counting_column_is_suspected(vflens: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,a,y\n1,2,u\n2,9,v\n3,4,v\n")
    facts = facts_of(vflens, tmp_path / "t.csv", "--label", "y", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert any("column 'n' counts upwards" in w for w in facts["warnings"])
    assert any("widened to float64 (n, a)" in w for w in facts["warnings"])


def test_existing_files_and_the_table_itself_are_not_overwritten(
    vflens: Run, table: Path, tmp_path: Path
) -> None:
    options = ("--label", "y", "--id", "who", "--encode", "ordinal", "--lambda", "1")
    out = tmp_path / "o.csv"
    out.write_text("mine")
    code, _, err = vflens(table, *options, "--out", out)
    assert (code, out.read_text()) == (2, "mine")
    assert "--force" in err
    original = table.read_bytes()
    assert vflens(table, *options, "--out", table, "--force")[0] == 2
    assert table.read_bytes() == original
    assert vflens(table, *options, "--out", out, "--force")[0] == 0
    assert len(OwnersTable(out).names) == 4


def test_semicolons_without_a_label_are_named_too(vflens: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1;2\n2;1\n")
    code, _, err = vflens(tmp_path / "t.csv", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 3
    assert "its header is one column, with other marks than a comma: separate columns by commas" in err
