"""``vl.results``: the results of all runs in many folders as one frame."""

from __future__ import annotations

from pathlib import Path

import pytest
from runfolder import write_run

import vflens as vl


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs/digits/undefended", {"lmmse": 0.02, "ls": 0.4})
    write_run(tmp_path / "runs/wine/undefended", {"ls": 0.04})
    write_run(tmp_path / "runs/wine/rounded", {"ls": 0.08}, defenses=[{"name": "round_scores", "digits": 1}])
    return tmp_path / "runs"


def test_one_frame_has_all_runs(runs: Path) -> None:
    found = vl.results(runs / "**").to_pylist()
    assert [(row["folder"], row["attack"], row["mse"]) for row in found] == [
        (str(runs / "digits/undefended"), "lmmse", 0.02),
        (str(runs / "digits/undefended"), "ls", 0.4),
        (str(runs / "wine/rounded"), "ls", 0.08),
        (str(runs / "wine/undefended"), "ls", 0.04),
    ]
    assert [row["defenses"] for row in found] == ["", "", "round_scores (digits 1)", ""]
    assert {row["blind"] for row in found} == {0.08}
    assert vl.results(str(runs)).equals(vl.results(runs / "**"))


def test_a_pattern_chooses_runs(runs: Path) -> None:
    found = vl.results(f"{runs}/*/undefended")
    assert found["folder"].to_pylist() == [
        *[str(runs / "digits/undefended")] * 2,
        str(runs / "wine/undefended"),
    ]
    owner = vl.results(runs / "wine/undefended/passive")
    assert owner["attack"].to_pylist() == ["ls"]


def test_a_pattern_without_runs_is_refused(runs: Path) -> None:
    with pytest.raises(vl.errors.DataError, match="names no run: give a folder with runs"):
        vl.results(runs / "none/**")
