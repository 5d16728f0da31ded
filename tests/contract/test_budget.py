"""A row's budget: counted by epochs, so a restart that asks on does not begin anew; said before a run where it can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w
from accidents import rebuild_all, train_until
from laboratory import SYNTHETIC, close, federation, figures

from experiments.check import check
from experiments.report import write_report
from vfl.errors import ConfigError, StateError

LAPLACE = {"name": "dp_laplace", "level": 4.0}  # ε = ½ a release
BEYOND = (
    r"release 3 of a training row makes ε = 1\.5 at δ = 1e-05, limits\.epsilon is 1: train for fewer epochs"
)


@pytest.mark.parametrize("at", ["passive", "active"])
@pytest.mark.parametrize("restart", [False, True])
def test_the_release_beyond_the_budget_is_not_made(tmp_path: Path, at: str, restart: bool) -> None:
    local = federation(tmp_path, defenses=[{**LAPLACE, "at": at}], limits={"epsilon": 1.0})
    local.coordinator.prepare()
    if restart:
        train_until(local, 6)
        rebuild_all(local)
    with pytest.raises(StateError, match=f"^{BEYOND}"):
        local.coordinator.train()
    assert local.data_parties[at].steps.epoch == 1
    close(local)


def test_what_was_spent_is_a_figure_and_stands_in_the_report(tmp_path: Path) -> None:
    local = federation(tmp_path, defenses=[{**LAPLACE, "at": "passive"}], limits={"epsilon": 1.5})
    local.run()
    found = figures(tmp_path / "passive")
    assert found["training_releases", "", ""] == 3
    assert found["training_epsilon", "", ""] == pytest.approx(1.5)
    assert found["prediction_epsilon", "", ""] == pytest.approx(0.5)
    assert ("training_epsilon", "", "") not in figures(tmp_path / "active")
    page = write_report([tmp_path / "passive"], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What noise adds up to" in page


def test_a_budget_that_a_training_exceeds_is_refused_before_it(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "name": "tiny", "data": SYNTHETIC, "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3}, "limits": {"epsilon": 1.0},
        "scenarios": [{"name": "run", "defenses": [{**LAPLACE, "at": "passive"}]}],
    }  # fmt: skip
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(settings))
    with pytest.raises(ConfigError, match=BEYOND.replace("a training row", "a training row of 'passive'")):
        check(file)
