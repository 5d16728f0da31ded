"""Fail points: some run reaches each that is listed, and a wrong VFLENS_FAIL is refused in words."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run
from laboratory import deal, experiment
from oneprocess import LocalFederation

from vflens import failpoints
from vflens.clients.horizontal.predictions import save_predictions
from vflens.config import load_party
from vflens.coordinator.horizontal.participation import Absences
from vflens.errors import ConfigError
from vflens.failpoints import ACTIONS, POINTS, WRITES, arm, fail_point
from vflens.protocol.acts import Query
from vflens.services.folder import begin
from vflens.types import Role
from vflens.wire.messages import RPCS

NETWORK = {"architecture": "mlp", "width": 3, "precision": "float64"}
#: Between them these runs write every file and ask for every act.
RUNS: dict[str, dict[str, Any]] = {
    "pictures, a sampled transcript": {
        "data": {"name": "digits", "sample": 60},
        "scoring": {"pictures": 2},
        "transcript": {"every": 3},
        "limits": {"checkpoint_steps": 2},
    },
    "a nonce, the active party aggregates": {
        "lab": False,
        "aggregator": "active",
        "model": NETWORK,
        "disclose": [],
    },
    "protected training, aligned by PSI": {
        "training": {"epochs": 1, "optimizer": "sgd", "protection": "shares"},
        "align": {"mode": "psi"},
    },
}


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.armed.clear()


def whole_run(home: Path, settings: dict[str, Any]) -> None:
    """A run from its first file to the answer of an operator's question."""
    files = deal(experiment(home, **settings), home)
    for file in files.values():
        begin(load_party(file))
    local = LocalFederation(files, lambda stage, done, total: None)
    local.coordinator.lead()
    local.coordinator.reached.start_again()
    local.coordinator.rejoin()
    local.complete()
    local.active.perform(Query("0"), "operator", Role.OPERATOR)
    local.coordinator.stop()
    for member in local.members():
        member.close()


def test_every_point_is_reached_and_every_point_that_is_reached_is_listed(tmp_path: Path) -> None:
    reached: set[str] = set()
    failpoints.armed.append(reached.add)
    for name, settings in RUNS.items():
        whole_run(tmp_path / name, settings)
    Absences(tmp_path / "absent.json").change(1, {"a"})  # a server's
    save_predictions(tmp_path, np.zeros(1, np.int32), np.zeros((1, 2)))  # a client's
    estimates = {point for point in reached if "half" in point}  # each attack has a file of its own
    assert reached - estimates == set(POINTS)


def test_every_act_has_its_points() -> None:
    acts = {point.removesuffix(".asked") for point in POINTS if point.endswith(".asked")}
    assert acts == {act.__name__ for act in RPCS}


def test_the_count_chooses_the_arrival() -> None:
    arm("state.json.written:3:full")
    for _ in range(2):
        fail_point("state.json.written")
        fail_point("state.json.begun")
    with pytest.raises(OSError, match="No space left on device") as full:
        fail_point("state.json.written")
    assert full.value.errno == errno.ENOSPC
    fail_point("state.json.written")  # once only


def test_a_delay_lets_the_process_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    arm("Step.asked:1:delay")
    fail_point("Step.asked")
    assert slept == [failpoints.DELAY_SECONDS]


def test_nothing_is_armed_by_default() -> None:
    arm("")
    assert not failpoints.armed


@pytest.mark.parametrize("text", ["elsewhere:1:kill", "kill", ":1:kill"])
def test_an_unknown_point_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^VFLENS_FAIL names '.*', which is no fail point: vflens/fail"):
        arm(text)


@pytest.mark.parametrize(
    "rest", ["", ":", ":0:kill", ":-1:kill", ":²:kill", ":1", ":1:", ":1:explode", ":1:kill:2", ":1.5:kill"]
)
def test_a_count_and_an_action_are_due(rest: str) -> None:
    with pytest.raises(ConfigError, match=r"write POINT:COUNT:ACTION, a count from 1 and one of kill, full"):
        arm(f"{WRITES[0]}{rest}")


@pytest.mark.parametrize("point", [point for point in POINTS if point not in WRITES])
def test_a_disk_is_full_at_writes_only(point: str) -> None:
    with pytest.raises(ConfigError, match=r"nothing is written at .*: choose kill or delay$"):
        arm(f"{point}:1:full")


def test_there_are_three_actions() -> None:
    assert list(ACTIONS) == ["kill", "full", "delay"]


def test_a_process_says_that_it_fails_on_purpose(
    vflens: Run, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VFLENS_FAIL", "settled:1:kill")
    assert vflens("version").err == "VFLENS_FAIL is set: this process fails on purpose\n"
    monkeypatch.setenv("VFLENS_FAIL", "settled:1:explode")
    assert refused(2, "version").startswith("VFLENS_FAIL is 'settled:1:explode': write POINT")
