"""`vflens attack` shows how far an attack has come."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from laboratory import experiment
from typer.testing import CliRunner

from vflens.cli.main import app
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.run.run import run

FINE_TUNED = {"fine_tune": True, "fine_tune_steps": 3}
LEARNED = {"learning_steps": 2}
#: Attack → the folder that it reads, its settings, the steps of its stages; L-BFGS may end before its last.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "wmi": ("active", {"steps": 4}, {"descent": 4}),
    "bmi": ("active", {"steps": 4, "learner": "adam", **LEARNED}, {"learning": 2, "descent": 4}),
    "inverse_network": ("active", LEARNED, {"learning": 2}),
    "wmi_moments": ("active", {"steps": 4, **LEARNED}, {"descent": 4, "exchange": 1}),
    "pmc": ("passive", FINE_TUNED, {"learning": 3}),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A split network of two parties that grant each other what attacks need."""
    disclose = [
        {"what": "parameters", "to": "active"},
        {"what": "auxiliary", "to": "active", "rows": 10},
        {"what": "labels", "to": "passive", "rows": 10},
    ]
    model = {"architecture": "mlp", "width": 6}
    attacks = [{"name": "pmc", "at": "passive", "steps": 1}]  # its folder then keeps its own rows
    what = experiment(tmp_path_factory.mktemp("runs"), model=model, disclose=disclose, attacks=attacks)
    (home,) = run(what, in_process=True).scenarios
    return home


@pytest.mark.parametrize("name", CASES)
def test_every_step_of_a_long_stage_is_counted(tmp_path: Path, recorded: Path, name: str) -> None:
    folder, parameters, steps = CASES[name]
    stated: list[tuple[str, int, int]] = []
    facts = attack_recorded(
        recorded / folder,
        name,
        None,
        tmp_path / "estimate.npz",
        parameters=parameters,
        progress=lambda *step: stated.append(step),
    )
    rows = facts["rows"]
    assert (stated[0], stated[-1]) == ((name, 0, rows), (name, rows, rows))
    inner = [step for step in stated if step[0] != name]
    assert {stage for stage, _, _ in inner} == set(steps)
    for stage, total in steps.items():
        assert [step for step in inner if step[0] == stage] == [(stage, i + 1, total) for i in range(total)]


def test_the_command_prints_its_stages(tmp_path: Path, recorded: Path) -> None:
    arguments = ["--attack", "wmi", "--set", "steps=4", "--out", str(tmp_path / "estimate.npz"), "--json"]
    ended = CliRunner().invoke(app, ["attack", str(recorded / "active"), *arguments])
    assert ended.exit_code == 0, ended.output
    assert re.findall(r"^ +[\d.]+ s  (.*)$", ended.stderr, re.MULTILINE) == ["descent 4/4", "wmi 18/18"]
