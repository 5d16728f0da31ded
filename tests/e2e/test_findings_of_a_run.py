"""What ``vl.run`` and ``vl.sweep`` found, as findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import vflens as vl

#: An experiment of a second.
SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"name": "wine"},
    "split": {"kind": "fraction", "fraction": 0.3},
    "training": {"epochs": 5},
    "attacks": [{"name": "half_star"}, {"name": "gradient_sign", "at": "passive"}],
    "disclose": [{"what": "parameters", "to": "active"}],
    "scenarios": [
        {"name": "undefended"},
        {"name": "one digit", "defenses": [{"at": "coordinator", "name": "round_scores", "digits": 1}]},
    ],
}


@pytest.fixture
def done(tmp_path: Path) -> vl.Run:
    return vl.run(vl.Experiment(**SMALL), out=tmp_path)


def test_findings_of_a_run_say_where_who_and_what_is_known(done: vl.Run) -> None:
    """The error over all columns is that of the results; labels have their adversary."""
    rows = {r["mse"] for r in done.results.to_pylist() if r["attack"] == "half_star"}
    every = [f for f in done.findings if f.quantity == "all"]
    assert {f.value for f in every if f.attack == "half_star"} == rows
    assert {f.where for f in every} == {"with no defence", "with round_scores (digits 1)"}
    assert {f.adversary for f in every} == {"the active party"}
    (named, *_) = (f for f in done.findings if f.quantity == "labels")
    assert (named.attack, named.adversary, named.target) == ("gradient_sign", "the passive party", "active")
    assert {f.state for f in done.findings} <= {"found", "not found", "not decided"}


def test_rows_of_a_sweep_hold_their_findings(tmp_path: Path) -> None:
    small = {key: value for key, value in SMALL.items() if key != "scenarios"}
    facts = vl.sweep({**small, "sweep": {"seeds": 1}}, out=tmp_path)
    rows = pq.read_table(facts["data"]).to_pylist()
    assert {f["quantity"] for row in rows for f in row["findings"]} == {"within", "all", "labels"}
    assert all(f["attack"] == row["attack"] for row in rows for f in row["findings"])
    assert [
        [f["value"] for f in row["findings"] if f["quantity"] == "all"] for row in rows if row["mse"]
    ] == [[row["mse"]] for row in rows if row["mse"]]
