"""Protected training between processes over TLS: a party that dies comes back, and predictions are served."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run, vflens
from laboratory import THREE, transcripts
from processes import Federation, dealt, eventually, experiment_file

from vflens.config import ActiveConfig, CoordinatorConfig, PassiveConfig, load_party
from vflens.experiments.results.ledger import lines
from vflens.experiments.results.record import RecordedRun, read_run
from vflens.experiments.run.dealer import SERVICES, deal_tables, write_parties
from vflens.experiments.run.loading import load_any, load_experiment
from vflens.experiments.run.run import run
from vflens.experiments.verify_log.verify import verify_logs
from vflens.experiments.watch import panels
from vflens.protocol.vertical.access import ON_SHARES
from vflens.storage.metrics import Name

_FIXTURES = (vflens,)  # used by name
STEPS = 60
SETTINGS: dict[str, Any] = {
    "parties": THREE,
    "training": {
        "epochs": 15,
        "batch_size": 20,
        "learning_rate": 0.3,
        "optimizer": "sgd",
        "protection": "shares",
    },
    "attacks": [{"name": "half"}],
    "limits": {"wait_seconds": 60, "rejoin_seconds": 60, "checkpoint_steps": 7},
    "network": {"transport": "tcp"},
}
SECONDS = 120  # on a loaded machine

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same federation in one process."""
    file = experiment_file(tmp_path_factory.mktemp("undisturbed"), **SETTINGS)
    (home,) = run(load_experiment(file), in_process=True).scenarios
    return home


def parameters(home: Path) -> bytes:
    with np.load(home / "active/own.npz") as own:
        return bytes(own["parameters"].tobytes())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A federation that serves, after ``a``, which computes, was killed in training and resumed."""
    with dealt(tmp_path_factory.mktemp("served"), **SETTINGS, after="serve") as federation:
        federation.start()
        log = federation.home / "active/transcript/index.jsonl"
        eventually(lambda: log.read_bytes().count(b'"opening"') > 5, SECONDS)
        federation.processes["a"].kill()
        assert federation.processes["a"].wait() == -signal.SIGKILL
        federation.start("a", flags=["--resume"])
        eventually(lambda: "serving predictions" in federation.said("coordinator"), SECONDS)
        yield federation


def test_a_party_that_was_killed_and_resumed_leaves_the_same_bits(
    served: Federation, undisturbed: Path
) -> None:
    assert parameters(served.home) == parameters(undisturbed)
    found, expected = transcripts(served.home), transcripts(undisturbed)
    assert {p: found[p] for p in ("active", "a")} == {p: expected[p] for p in ("active", "a")}
    digests = (served.home / "a/released/digests.bin").read_bytes()
    exchanges = [digests[at : at + 18] for at in range(0, len(digests), 50)]
    assert len(exchanges) == len(set(exchanges)) > 2 * STEPS  # no mask hid two values


def test_its_operator_asks_for_predictions(served: Federation, vflens: Run) -> None:
    config = str(served.config("active"))
    answers = json.loads(vflens("predict", "--config", config, "--rows", "0-2", "--json").out)
    assert [answer["row"] for answer in answers] == [0, 1, 2]
    assert all(abs(sum(answer["scores"].values()) - 1) < 1e-9 for answer in answers)


def test_status_counts_the_messages_of_its_steps(served: Federation, vflens: Run) -> None:
    for party, peers in (("a", 2), ("active", 4)):
        found = json.loads(vflens("status", "--config", str(served.config(party)), "--json").out)
        assert (found["state"], found["serves"], len(found["peers"])) == ("running", True, peers)
        assert found["step"] == 2 * STEPS


@pytest.fixture(scope="module")
def recorded(undisturbed: Path) -> RecordedRun:
    return read_run(undisturbed)


def test_the_live_page_shows_what_was_opened_and_the_clear_twin(recorded: RecordedRun) -> None:
    kinds = {(c.crossing.sender, c.crossing.point) for c in lines(recorded)}
    assert {("a", "opening"), ("active", "opening"), ("coordinator", "shares")} <= kinds
    figures = dict(panels.utility(recorded)["figures"])
    assert {"accuracy", "accuracy, trained in the clear"} <= figures.keys()
    assert recorded.utility[Name.ACCURACY_CLEAR] > 0.5


def test_the_audit_of_all_folders_fits(undisturbed: Path) -> None:
    (audited,) = verify_logs([undisturbed])
    assert audited.found.findings == []


def test_services_of_a_compose_file_know_the_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFLENS_NETWORK", SERVICES)
    experiment = load_any(Path(__file__).parents[2] / "examples/protected.toml")
    files = write_parties(experiment, experiment.scenarios[0], deal_tables(experiment), tmp_path)
    for party in ("coordinator", "active", "passive"):
        config = load_party(files[party])
        assert isinstance(config, CoordinatorConfig | ActiveConfig | PassiveConfig)
        assert config.way is ON_SHARES
        assert config.tls is not None
