"""An active party that sends another gradient: it must say so, and everything else holds as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import outcome, restarted
from laboratory import SYNTHETIC, close, deal, estimates, experiment, federation, figures, transcripts

from vflens.config import load_party
from vflens.errors import ConfigError
from vflens.experiments.pages.report import render
from vflens.experiments.results.ledger import notes
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import alarms, verdict
from vflens.experiments.run.check import check_party
from vflens.experiments.run.run import run
from vflens.storage import journal
from vflens.types import Point

NETWORK = {"architecture": "mlp", "width": 4, "precision": "float64"}
FSHA: dict[str, Any] = {
    "data": {**SYNTHETIC, "public": 30},
    "model": NETWORK,
    "attacks": [{"name": "fsha", "batch": 8, "hidden": 1}],
    "disclose": [],
}


def _gradients(home: Path) -> list[np.ndarray]:
    return [
        r.tensor("gradient") for r in journal.read(home / "passive/transcript") if r.point is Point.GRADIENT
    ]


def test_the_party_must_say_that_it_breaks_the_protocol(tmp_path: Path) -> None:
    config = load_party(deal(experiment(tmp_path, **FSHA), tmp_path)["active"])
    with pytest.raises(ConfigError, match="set malicious = true, or leave it out"):
        check_party(config)


def test_a_party_that_only_says_so_is_refused(tmp_path: Path) -> None:
    config = load_party(deal(experiment(tmp_path, malicious=True), tmp_path)["active"])
    with pytest.raises(ConfigError, match="exactly one attack that breaks the protocol"):
        check_party(config)


def test_two_passive_parties_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are 2 passive parties"):
        federation(tmp_path, **FSHA, malicious=True, parties={"passive": ["a", "b"]}).run()


def test_it_is_marked_everywhere_and_scored_as_any_attack(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path, **FSHA, malicious=True), tmp_path)
    assert "MALICIOUS" in check_party(load_party(files["active"]))["summary"]
    local = federation(tmp_path / "run", **FSHA, malicious=True)
    local.run()
    (found,) = read_runs([tmp_path / "run"])
    assert any(a.startswith("MALICIOUS") and "active" in a for a in alarms([found]))
    assert any(n.startswith("MALICIOUS") for n in notes(found, []))
    assert "MALICIOUS" in render([found])
    assert "Training in the clear: fsha read training traffic." in str(verdict([found]))
    assert "malicious" in (tmp_path / "run/active/events.jsonl").read_text(encoding="utf-8")
    assert figures(tmp_path / "run/passive")["mse", "fsha", ""] > 0


@pytest.mark.parametrize("place", ["coordinator", "active"])
def test_grpc_and_restarts_change_no_bit_of_what_it_sends(tmp_path: Path, place: str) -> None:
    settings = {**FSHA, "malicious": True, "aggregator": place, "limits": {"checkpoint_steps": 3}}
    plain = federation(tmp_path / "plain", **settings)
    plain.coordinator.prepare()
    plain.coordinator.train()
    expected = outcome(plain, tmp_path / "plain")
    assert any("sending/judging" in name for name in plain.active.state())
    again = federation(tmp_path / "again", **settings)
    assert restarted(again, tmp_path / "again", steps=5) == expected


@pytest.mark.facts
@pytest.mark.usefixtures("one_start")
def test_processes_give_the_bits_of_one_process(tmp_path: Path) -> None:
    found = []
    for name in ("processes", "one"):
        what = experiment(tmp_path / name, **FSHA, malicious=True, network={"transport": "unix"})
        (home,) = run(what, in_process=name == "one").scenarios
        found.append((estimates(home), transcripts(home), figures(home / "passive")["mse", "fsha", ""]))
    assert found[0] == found[1]
    assert set(found[0][0]) == {"passive.fsha.npz"}


def test_what_leaves_is_no_gradient_of_the_loss(tmp_path: Path) -> None:
    """The honest run of the same seed sends other numbers from the first step on, of the same shape."""
    honest = {**FSHA, "attacks": []}
    for name, settings in (("honest", honest), ("malicious", {**FSHA, "malicious": True})):
        local = federation(tmp_path / name, **settings)
        local.coordinator.prepare()
        local.coordinator.train()
        close(local)
    true, false = (_gradients(tmp_path / name)[0] for name in ("honest", "malicious"))
    assert true.shape == false.shape
    assert true.dtype == false.dtype
    assert not np.allclose(true, false)
