"""One seed, one result, bit for bit: twice in one process, and with one process per party."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import THREE, estimates, experiment, federation, trained, transcripts

from vflens.experiments.run.run import run
from vflens.storage import journal
from vflens.types import Point

NOISE = [{"name": "gaussian_scores", "sigma": 0.5, "at": "coordinator"}]
ATTACKS = [{"name": n} for n in ("half_star", "random_guess", "lmmse", "zero")]
GRANTS = [{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 10}]
SETTINGS: dict[str, Any] = {"defenses": NOISE, "attacks": ATTACKS, "disclose": GRANTS}
PARTIES: list[dict[str, Any]] = [{}, THREE]
PROTECTED = {"epochs": 1, "batch_size": 20, "learning_rate": 0.5, "optimizer": "sgd", "protection": "shares"}


def _scores(home: Path) -> bytes:
    """All bits of the scores that the active party received."""
    received = journal.read(home / "active" / "transcript")
    return b"".join(r.tensor("scores").tobytes() for r in received if r.point is Point.SCORES)


@pytest.mark.parametrize("parties", PARTIES, ids=["one", "three"])
def test_two_runs_in_one_process_are_equal_bit_for_bit(tmp_path: Path, parties: dict[str, Any]) -> None:
    found = []
    for name in ("a", "b"):
        np.random.default_rng().random()  # whatever ran in between
        local = federation(tmp_path / name, parties=parties, **SETTINGS)
        local.run()
        home = tmp_path / name
        found.append((trained(local), _scores(home), estimates(home), transcripts(home)))
    assert found[0] == found[1]
    learned, scores, guesses, logs = found[0]
    passive = parties.get("passive", ["passive"])
    assert len(scores) == 18 * 3 * 8
    assert len(guesses) == (len(ATTACKS) + 1) * len(passive)  # and the guess from known rows
    assert set(logs) == {*passive, "active", "coordinator"}
    assert len(set(logs.values())) == 3  # passive parties receive the same gradients
    assert all(learned.values())


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    logs = []
    for seed in (1, 2):
        home = tmp_path / str(seed)
        federation(home, seed=seed, **SETTINGS).run()
        logs.append(transcripts(home))
    assert not set(logs[0].values()) & set(logs[1].values())


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_score_defence_does_not_touch_training(tmp_path: Path, optimizer: str) -> None:
    found = []
    training = {"epochs": 2, "batch_size": 20, "optimizer": optimizer}
    for name, defenses in (("plain", []), ("noise", NOISE)):
        local = federation(tmp_path / name, training=training, **{**SETTINGS, "defenses": defenses})
        local.run()
        found.append((trained(local), _scores(tmp_path / name)))
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]


@pytest.mark.parametrize("parties", [pytest.param({}, marks=pytest.mark.facts), THREE], ids=["one", "three"])
@pytest.mark.usefixtures("one_start")
def test_processes_give_the_bits_of_one_process(tmp_path: Path, parties: dict[str, Any]) -> None:
    found = []
    for name in ("processes", "one"):
        what = experiment(tmp_path / name, parties=parties, network={"transport": "unix"}, **SETTINGS)
        (home,) = run(what, in_process=name == "one").scenarios
        own = (home / "active" / "own.npz").read_bytes()
        found.append((own, _scores(home), estimates(home), transcripts(home)))
    assert found[0] == found[1]
    assert len(found[0][3]) == 2 + len(parties.get("passive", ["passive"]))


@pytest.mark.usefixtures("one_start")
@pytest.mark.facts
def test_protected_training_over_mutual_tls_gives_the_bits_of_one_process(tmp_path: Path) -> None:
    found = {}
    attacks = [{"name": name} for name in ("half_star", "zero")]
    for alone in (True, False):
        what = experiment(tmp_path / str(alone), parties=THREE, training=PROTECTED, attacks=attacks)
        (home,) = run(what, in_process=alone).scenarios
        own = (home / "active" / "own.npz").read_bytes()
        found[alone] = own, _scores(home), estimates(home), transcripts(home)
    assert found[True] == found[False]
    names = {*THREE["passive"], "active", "coordinator"}
    assert set(found[False][3]) == names
    assert {name for name in names if (home / name / "tls/certificate.pem").exists()} == names
    opened = [r.exchange.step for r in journal.read(home / "active/transcript") if r.point is Point.OPENING]
    assert opened == list(range(2 * 4 + 1))  # four steps of two messages, and the last message
