"""A horizontal experiment from its file to its report: one process per party, mutual TLS, the same bits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from laboratory import transcripts
from processes import ENVIRONMENT, VFLENS

from vflens.experiments.results.record import read_runs
from vflens.experiments.results.utility import clients, utility
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.storage.files import load_arrays

SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"name": "synthetic", "rows": 120, "features": 6, "classes": 2},
    "split": {"alpha": 3.0},
    "parties": {"clients": 2},
    "horizontal": {"rounds": 3},
    "training": {"batch_size": 16},
    "network": {"transport": "tcp"},
}


@pytest.mark.timeout(300)
def test_processes_over_mutual_tls_give_the_bits_of_one_process(tmp_path: Path) -> None:
    found, guessed = {}, {}
    attacked = {
        "attacks": [{"name": "softmax_inversion"}],
        "horizontal": {"rounds": 3, "local_steps": 1},
        "training": {"batch_size": 1, "optimizer": "sgd"},
    }
    for alone in (True, False):
        out = tmp_path / str(alone)
        done = run(HorizontalExperiment.model_validate({**SMALL, **attacked, "out": out}), in_process=alone)
        (home,) = done.scenarios
        found[alone] = transcripts(home)
        files = sorted((home / "server" / "estimates").glob("*.npz"))
        guessed[alone] = [load_arrays(file)["values"].tobytes() for file in files]
        (result,) = read_runs([home])
        accuracies = [together for _, together, _ in clients(result)]
        assert utility(result)["accuracy"] == sum(accuracies) / 2
        page = done.report.read_text(encoding="utf-8")
        assert all(words in page for words in ("client-1", "client-2", "update of every round"))
    assert (home / "client-1" / "tls" / "certificate.pem").exists()
    assert found[True] == found[False]
    assert guessed[True] == guessed[False]
    assert len(guessed[True]) == 2
    assert sorted(found[True]) == ["client-1", "client-2", "server"]


def vflens(*arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    """A command; ``fault`` kills each of its processes that comes to this point."""
    environment = ENVIRONMENT | {"VFLENS_FAIL": fault}
    command = [*VFLENS, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.facts
@pytest.mark.timeout(300)
def test_a_run_whose_clients_and_then_its_server_were_killed_is_resumed_to_the_same_bits(
    tmp_path: Path,
) -> None:
    settings = {**SMALL, "network": {"transport": "unix"}, "limits": {"wait_seconds": 60}}
    whole = HorizontalExperiment.model_validate({**settings, "out": tmp_path / "whole"})
    (home,) = run(whole, in_process=True).scenarios
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps({**settings, "out": str(tmp_path / "killed")}), encoding="utf-8")
    killed = vflens("run", str(file), fault="Step.answered:2:kill")
    again = vflens("resume", str(tmp_path / "killed/small"), fault="Finished.answered:1:kill")
    for ended in (killed, again):
        assert ended.returncode == 11, ended.stderr
        assert "Traceback" not in ended.stderr
    resumed = vflens("resume", str(tmp_path / "killed/small"))
    assert resumed.returncode == 0, resumed.stderr
    assert transcripts(tmp_path / "killed/small" / home.name) == transcripts(home)
