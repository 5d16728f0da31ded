"""FedAdOb's theorems in reports: only beside the attacks that they are about, never compared."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import close, federation

from vflens.experiments.pages.report import write_report
from vflens.experiments.results import fedadob
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.theory import to_json
from vflens.numerics.theory.fedadob import log_recovery_probability

PASSPORTS = [{"name": "passport", "at": at, "largest_mean": 0.5} for at in ("passive", "active")]
SETTINGS: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 6, "top": [7]},
    "training": {"epochs": 2, "batch_size": 20, "learning_rate": 0.05},
    "attacks": [
        {"name": "wmi", "passport": "none", "steps": 3, "starts": 1},
        {"name": "wmi:guessing", "passport": "random", "steps": 3, "starts": 1},
        {"name": "pmc", "at": "passive", "steps": 5},
    ],
    "disclose": [
        {"what": "parameters", "to": "active"},
        {"what": "labels", "to": "passive", "rows": 30},
    ],
}


@pytest.fixture(scope="module", params=["own layer", "later layer", "undefended"])
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, RecordedRun, Path]:
    """A run with passports around a bottom's only layer, around its second one, or with none."""
    home = tmp_path_factory.mktemp("run")
    hidden = {"hidden": [5]} if request.param == "later layer" else {}
    defenses = [] if request.param == "undefended" else PASSPORTS
    local = federation(home, **SETTINGS | {"model": SETTINGS["model"] | hidden}, defenses=defenses)
    local.run()
    close(local)
    (run,) = read_runs([home])
    return request.param, run, home


def test_theorem_1_stands_beside_random_guesses_only(case: tuple[str, RecordedRun, Path]) -> None:
    kind, run, _ = case
    found = [f for f in fedadob.beside(run) if f.theorem == "FedAdOb Theorem 1"]
    assert {f.attack for f in found} == (set() if kind == "undefended" else {"wmi:guessing"})
    columns = len(run.infos()["passive"].columns)
    for f in found:
        means = {"own layer": columns, "later layer": 5}[kind]
        expected = math.exp(log_recovery_probability(f.measured * math.sqrt(means), 0.5, means))
        assert f.value == pytest.approx(expected)
        assert f"{means} means from U(−0.5, 0)" in f.says
        assert ("a later layer, whose error is not measured" in f.says) == (kind == "later layer")


def test_theorem_2_stands_beside_a_model_fitted_to_granted_labels(
    case: tuple[str, RecordedRun, Path],
) -> None:
    kind, run, _ = case
    found = [f for f in fedadob.beside(run) if f.theorem == "FedAdOb Theorem 2"]
    assert {f.attack for f in found} == (set() if kind == "undefended" else {"pmc"})
    for f in found:
        assert 0 < f.value < 30 * math.sqrt(2)  # 30 rows of 6 numbers: more than a linear map can fit
        assert "a sum of distances" in f.says
        assert 0 <= f.measured <= 1


def test_the_page_shows_them_and_compares_nothing(
    case: tuple[str, RecordedRun, Path], tmp_path: Path
) -> None:
    kind, run, home = case
    page = tmp_path / "report.html"
    write_report([home], page)
    text = page.read_text(encoding="utf-8")
    assert ("are not compared" in text) == (kind != "undefended")
    found = json.loads(json.dumps(to_json(run)["fedadob"]))
    assert [f["theorem"] for f in found] == [f.theorem for f in fedadob.beside(run)]
    assert np.isfinite([f["value"] for f in found]).all()


def test_folders_without_their_files_and_settings_of_another_version_say_nothing(
    case: tuple[str, RecordedRun, Path], tmp_path: Path
) -> None:
    kind, _, home = case
    copied = Path(shutil.copytree(home, tmp_path / "copied"))
    for party in ("passive", "active"):
        shutil.rmtree(next(copied.rglob(f"{party}/transcript")))
        file = next(copied.rglob(f"{party}/config.toml"))
        file.write_text(file.read_text(encoding="utf-8").replace("largest_mean = 0.5", "largest_mean = -1.0"))
    assert ("largest_mean = -1.0" in file.read_text(encoding="utf-8")) == (kind != "undefended")
    (run,) = read_runs([copied])
    assert fedadob.beside(run) == ()
