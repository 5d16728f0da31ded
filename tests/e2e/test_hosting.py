"""Clients that share processes: the bits of a process each, and ends in words however the process ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from laboratory import transcripts
from processes import Federation, dealt_from, eventually, forked
from terminals import start
from thinned import first

from vflens.experiments.results.record import read_run
from vflens.experiments.results.utility import clients
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.services.folder import is_held

SECONDS = 200  # on a loaded machine
SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"name": "synthetic", "rows": 200, "features": 6, "classes": 2},
    "parties": {"clients": 5},
    "horizontal": {"rounds": 3, "secure_aggregation": True},
    "training": {"batch_size": 16},
    "limits": {"wait_seconds": 60},
}


def experiment(**changes: Any) -> HorizontalExperiment:
    return HorizontalExperiment.model_validate({**SMALL, **changes})


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("one_start")
def test_shared_processes_give_the_bits_of_a_process_each(tmp_path: Path) -> None:
    """Over mutual TLS: each client shows its own certificate, whoever it shares a process with."""
    found, figures = {}, {}
    for processes in (5, 2):
        parties = {"clients": 5, "processes": processes}
        changes = {"parties": parties, "network": {"transport": "tcp"}, "out": tmp_path / str(processes)}
        (home,) = run(experiment(**changes)).scenarios
        found[processes] = transcripts(home)
        result = read_run(home)
        figures[processes] = list(clients(result))
        hosted = {p.name for p in result.parties if p.federation.in_process}
        assert hosted == ({f"client-{i}" for i in range(1, 6)} if processes == 2 else set())
        keys = {(home / f"client-{i}" / "tls" / "key.pem").read_bytes() for i in range(1, 6)}
        assert len(keys) == 5
    assert found[5] == found[2]
    assert figures[5] == figures[2]


@pytest.mark.timeout(300)
@pytest.mark.facts
def test_a_killed_process_of_clients_ends_the_run_in_words_and_is_resumed(tmp_path: Path) -> None:
    (home,) = run(experiment(out=tmp_path / "whole"), in_process=True).scenarios
    file, killed = tmp_path / "experiment.toml", tmp_path / "killed/small"
    parties = {"parties": {"clients": 5, "processes": 2}, "out": str(tmp_path / "killed")}
    file.write_text(tomli_w.dumps({**SMALL, **parties}), encoding="utf-8")
    ended = forked("run", str(file), environment={"VFLENS_FAIL": "Step.answered:4:kill"})
    assert ended.returncode == 11, ended.stderr
    assert "error: the process of " in ended.stderr
    assert " clients, client-" in ended.stderr
    assert f"was killed by SIGKILL: go on with vflens resume {killed}" in ended.stderr
    assert not any(is_held(party) for party in (killed / "run").iterdir())
    resumed = forked("resume", str(killed))
    assert resumed.returncode == 0, resumed.stderr
    assert transcripts(killed / home.name) == transcripts(home)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Federation]:
    """Clients whose server never comes."""
    with dealt_from(experiment(parties={"clients": 3}), tmp_path / "dealt") as federation:
        yield federation


def serve_together(federation: Federation) -> None:
    files = [word for i in (1, 2, 3) for word in ("--config", str(federation.config(f"client-{i}")))]
    output = federation.home / "client-1" / "output.log"
    federation.processes["client-1"] = start(["serve", "client", *files], output)


@pytest.mark.parametrize("number", first([signal.SIGTERM, signal.SIGINT]))
def test_a_signal_ends_all_clients_of_a_process_in_order(waiting: Federation, number: signal.Signals) -> None:
    serve_together(waiting)
    everyone = [f"client-{i}" for i in (1, 2, 3)]
    eventually(lambda: all(f"{party}: waiting for server" in waiting.said("client-1") for party in everyone))
    waiting.processes["client-1"].send_signal(number)
    assert waiting.processes["client-1"].wait(SECONDS) == 130, waiting.said("client-1")
    stopped = {"state": "interrupted", "reason": "stopped by a signal"}
    assert [waiting.status(party) for party in everyone] == [stopped] * 3


def test_the_client_that_fails_names_the_reason_and_ends_the_others(waiting: Federation) -> None:
    (waiting.home / "client-2" / "data.parquet").unlink()
    serve_together(waiting)
    assert waiting.processes["client-1"].wait(SECONDS) == 3, waiting.said("client-1")
    last = waiting.said("client-1").splitlines()[-1]
    assert last.startswith("error: ")
    assert "client-2/data.parquet" in last
    states = [waiting.status(f"client-{i}")["state"] for i in (1, 2, 3)]
    assert states == ["interrupted", "failed", "interrupted"]


def test_clients_alone_share_a_process(waiting: Federation) -> None:
    files = [waiting.config("server")] * 2
    refused = forked("serve", "server", *(w for file in files for w in ("--config", str(file))))
    assert refused.returncode == 2
    assert "clients alone share a process, give one file" in refused.stderr
