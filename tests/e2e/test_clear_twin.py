"""In lab mode a protected run has the worth of its clear twin beside its own: of classes and of a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import THREE, experiment
from laboratory import federation as clear_federation

from vflens.experiments.results.record import RecordedRun, read_run
from vflens.experiments.run.resume import resume
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical import clear_twin
from vflens.storage.metrics import Name

TRAINING = {"epochs": 6, "batch_size": 20, "learning_rate": 0.5, "l2": 0.01, "optimizer": "sgd"}
SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 200, "features": 7, "classes": 3, "informative": 4},
    "parties": THREE,
    "training": {**TRAINING, "protection": "shares"},
    "attacks": [{"name": "half"}],
    "network": {"transport": "unix"},
}
pytestmark = pytest.mark.usefixtures("one_start")
TWINS = {Name.ACCURACY_CLEAR: Name.ACCURACY, Name.AUC_CLEAR: Name.AUC}
OF_A_NUMBER: dict[str, Any] = {
    "data": {"name": "diabetes", "sample": 200},
    "model": {"family": "linear_regression"},
    "training": {**TRAINING, "learning_rate": 0.04, "protection": "shares"},
    "attacks": [],
}


def figures(found: RecordedRun) -> dict[Name, float]:
    return {clear: found.utility[clear] for clear in TWINS}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[Name, float]:
    """Accuracy and AUC of the federation that trains in the clear, with the same seed."""
    home = tmp_path_factory.mktemp("clear")
    clear_federation(home, **{**SETTINGS, "training": TRAINING, "attacks": []}).run()
    found = read_run(home).utility
    return {clear: found[name] for clear, name in TWINS.items()}


@pytest.mark.parametrize("in_process", [True, False])
def test_the_twin_is_the_same_federation_without_protection(
    tmp_path: Path, expected: dict[Name, float], in_process: bool
) -> None:
    stages: set[str] = set()
    made = run(
        experiment(tmp_path, **SETTINGS),
        in_process=in_process,
        tell=lambda scenario, event: stages.add(str(event.get("stage"))),
    )
    found = read_run(made.scenarios[0])
    assert figures(found) == expected
    assert found.utility[Name.ACCURACY] == pytest.approx(expected[Name.ACCURACY_CLEAR], abs=0.1)
    page = made.report.read_text(encoding="utf-8")
    share = f"{100 * expected[Name.ACCURACY_CLEAR]:.1f} %"
    assert f"trained in the clear with the same seed {share}" in page
    assert "accuracy, trained in the clear" in page
    assert "training, clear twin" in stages


def test_a_resumed_run_has_it_too(tmp_path: Path, expected: dict[Name, float]) -> None:
    made = run(experiment(tmp_path, **SETTINGS), in_process=True)
    (home,) = made.scenarios
    for status in home.glob("*/status.json"):
        status.unlink()
    (home / "active/metrics.parquet").unlink()
    resume(made.folder)
    assert figures(read_run(home)) == expected


@pytest.mark.facts
def test_a_run_interrupted_during_its_training_goes_on(
    tmp_path: Path, expected: dict[Name, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clear_twin, "add_clear_twin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(experiment(tmp_path, **SETTINGS), in_process=True)
    monkeypatch.undo()
    home = next(tmp_path.glob("*/*/active")).parent
    assert not set(TWINS) & set(read_run(home).utility)
    resume(home)
    assert figures(read_run(home)) == expected


def test_the_twin_of_a_number_differs_by_rounding_alone(tmp_path: Path) -> None:
    """It trains with the same rate on the same batches: R² and RMSE tell no difference, and are in words."""
    made = run(experiment(tmp_path / "shares", **OF_A_NUMBER), in_process=True)
    in_the_clear = {**OF_A_NUMBER["training"], "protection": "none"}
    clear_federation(tmp_path / "clear", **OF_A_NUMBER | {"training": in_the_clear}).run()
    found, alone = read_run(made.scenarios[0]).utility, read_run(tmp_path / "clear").utility
    assert (found[Name.R2_CLEAR], found[Name.RMSE_CLEAR]) == (alone[Name.R2], alone[Name.RMSE])
    assert found[Name.R2] == pytest.approx(found[Name.R2_CLEAR], abs=1e-3)
    assert found[Name.R2] != found[Name.R2_CLEAR]
    assert found[Name.RMSE] == pytest.approx(found[Name.RMSE_CLEAR], rel=1e-3)
    assert found[Name.RMSE] > 10  # of a label from 25 to 346
    page = made.report.read_text(encoding="utf-8")
    assert f"trained in the clear with the same seed {alone[Name.R2]:.3f} and {alone[Name.RMSE]:.4g}" in page
    assert "RMSE, trained in the clear" in page


@pytest.mark.facts
def test_the_twin_of_two_classes_is_the_same_training(tmp_path: Path) -> None:
    """The parameters of shares are those of softmax at half the rate and twice the penalty; at the whole rate
    they differ by far more.
    """
    two = {**SETTINGS, "data": {**SETTINGS["data"], "classes": 2, "rows": 400}}
    made = run(experiment(tmp_path / "shares", **two), in_process=True)
    found = read_run(made.scenarios[0]).utility
    assert found[Name.AUC] == pytest.approx(found[Name.AUC_CLEAR], abs=2e-3)
    clear_federation(tmp_path / "clear", **{**two, "training": TRAINING, "attacks": []}).run()
    assert abs(read_run(tmp_path / "clear").utility[Name.AUC] - found[Name.AUC_CLEAR]) > 2e-3


def test_no_twin_without_protection_or_with_several_owners(tmp_path: Path) -> None:
    clear = run(experiment(tmp_path, **{**SETTINGS, "training": TRAINING, "attacks": []}), in_process=True)
    apart = run(experiment(tmp_path, **SETTINGS, lab=False), in_process=True)
    for made in (clear, apart):
        found = read_run(made.scenarios[0]).utility
        assert Name.ACCURACY in found
        assert not set(TWINS) & set(found)
