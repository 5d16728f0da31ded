"""The compose files say what the dealer writes, and their very commands make federations of both settings."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import terminals
import yaml
from nonempty import nonempty
from processes import eventually

from vflens.config import load_party
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.dealer import SERVICES, TLS, deal_tables, write_parties
from vflens.experiments.run.loading import load_any
from vflens.services.forking.forks import Fork
from vflens.services.healthcheck import serves_itself

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Topology:
    """A compose file, the experiment that its dealer deals, and the party whose output is shown."""

    file: str
    example: str
    leader: str
    progress: str

    @cached_property
    def compose(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((ROOT / self.file).read_text(encoding="utf-8"))
        return found

    @property
    def dealer(self) -> dict[str, Any]:
        service: dict[str, Any] = self.compose["services"]["dealer"]
        return service

    @property
    def served(self) -> dict[str, Any]:
        return {name: s for name, s in self.compose["services"].items() if name != "dealer"}


TOPOLOGIES = (
    Topology("docker-compose.yml", "compose.toml", "coordinator", "training 60/60"),
    Topology("docker-compose.horizontal.yml", "compose_horizontal.toml", "server", "training 20/20"),
)


@pytest.fixture(params=TOPOLOGIES, ids=lambda topology: topology.leader)
def topology(request: pytest.FixtureRequest) -> Topology:
    found: Topology = request.param
    return found


@pytest.fixture
def experiment(topology: Topology) -> AnyPartiesExperiment:
    return load_any(ROOT / "examples" / topology.example)


@pytest.fixture
def dealt(
    topology: Topology, experiment: AnyPartiesExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The configurations that the dealer writes in a network of services, by party."""
    monkeypatch.setenv("VFLENS_NETWORK", topology.dealer["environment"]["VFLENS_NETWORK"])
    files = write_parties(experiment, experiment.scenarios[0], deal_tables(experiment), tmp_path)
    return {party: tomllib.loads(file.read_text(encoding="utf-8")) for party, file in files.items()}


def test_services_are_the_parties(topology: Topology, dealt: dict[str, Any]) -> None:
    assert topology.dealer["environment"]["VFLENS_NETWORK"] == SERVICES
    assert set(topology.served) == set(dealt)
    for party, config in dealt.items():
        command = ["vflens", "serve", config["role"], "--config", f"parties/{party}/config.toml"]
        assert topology.served[party]["command"][:5] == command
        assert "insecure" not in config
        assert config["tls"] == TLS  # they meet under their services' names, over mutual TLS
        assert config["limits"]["rejoin_seconds"] == 60  # longer than a container takes to restart
        assert ("--resume" in topology.served[party]["command"], topology.served[party]["restart"]) == (
            True,
            "on-failure:3",
        )
        assert config["out"] == "."  # results land in the party's own volume


def test_only_the_leader_speaks(topology: Topology) -> None:
    loud = {name for name, s in topology.served.items() if "--quiet" not in s["command"]}
    assert loud == {topology.leader}


def test_ports_are_those_of_the_example(
    topology: Topology, dealt: dict[str, Any], experiment: AnyPartiesExperiment
) -> None:
    port = experiment.network.port
    for party, config in dealt.items():
        assert config["address"] == f"0.0.0.0:{port}"
        assert topology.served[party]["healthcheck"]["test"][-1] == f"parties/{party}/config.toml"
        assert {p["address"] for p in config["peers"]} == {f"{p['name']}:{port}" for p in config["peers"]}
    assert not any("ports" in service for service in topology.compose["services"].values())
    assert topology.compose["networks"]["federation"]["internal"] is True


def test_each_party_mounts_its_own_volume_only(topology: Topology) -> None:
    own = {name: [f"{name}:/vflens/parties/{name}"] for name in topology.served}
    assert {name: s["volumes"] for name, s in topology.served.items()} == own
    assert sorted(topology.dealer["volumes"]) == sorted(
        volume for volumes in own.values() for volume in volumes
    )
    assert set(topology.compose["volumes"]) == set(topology.served)


def test_the_dealer_ends_before_anybody_starts(topology: Topology) -> None:
    for service in nonempty(topology.served.values()):
        assert service["depends_on"] == {"dealer": {"condition": "service_completed_successfully"}}


def test_nobody_is_root_and_the_folders_belong_to_the_user(topology: Topology) -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    users = {service["user"] for service in topology.compose["services"].values()}
    assert users == {"vflens"}
    assert "\nUSER vflens\n" in image
    assert "WORKDIR /vflens\n" in image
    for party in topology.served:
        assert f"parties/{party}" in image
    assert "chmod 700 parties/*" in image  # a run folder that others can open is refused


def test_a_party_writes_into_its_volume_only_and_needs_no_shell(topology: Topology) -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for service in topology.compose["services"].values():
        assert service["read_only"] is True
        assert isinstance(service["command"], list)
        assert service.get("healthcheck", {"test": ["CMD"]})["test"][0] == "CMD"
    assert "ENTRYPOINT" not in image
    assert image.strip().endswith('CMD ["vflens", "--help"]')


def test_the_image_takes_hashed_packages_only() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    steps = [step for step in re.split("&&|\n", image) if not step.startswith("#")]
    installs = [step for step in steps if re.search(r"pip .*\b(install|wheel)\b", step)]
    assert len(installs) == 4
    assert all(("--require-hashes" in part) != ("--no-index" in part) for part in installs)
    assert image.count("FROM ${BASE}") == image.count("\nFROM ") == 2


def test_the_image_gets_every_package() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    links = [room.name for room in (ROOT / "vflens").iterdir() if room.is_symlink()]
    assert len(links) == 7
    for package in ["vflens", *links]:
        assert f"COPY {package} /src/{package}" in image
        assert f"!{package}" in ignore


def test_the_commands_make_a_federation(topology: Topology, tmp_path: Path) -> None:
    """Local processes, in the same layout: without VFLENS_NETWORK addresses are loopback."""
    served = topology.served
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    dealt = _command(topology.dealer["command"], tmp_path, tmp_path / "dealer.log")
    assert dealt.wait(60) == 0, (tmp_path / "dealer.log").read_text(encoding="utf-8")
    started: dict[str, Fork] = {}
    try:
        first, *others = sorted(served, reverse=True)  # any order will do
        for party in (first, *others):
            started[party] = _command(served[party]["command"], tmp_path, tmp_path / f"{party}.log")
            if party == first:
                _wait_until_healthy(served[party], tmp_path)
        codes = {party: process.wait(90) for party, process in started.items()}
        text = {party: (tmp_path / f"{party}.log").read_text(encoding="utf-8") for party in started}
    finally:
        for process in started.values():
            process.kill()
    assert codes == dict.fromkeys(topology.served, 0), text
    assert {party for party, output in text.items() if output} == {topology.leader}
    assert topology.progress in text[topology.leader]
    assert "the run is complete" in text[topology.leader]
    for party in topology.served:
        assert pq.read_table(tmp_path / "parties" / party / "metrics.parquet").num_rows > 0


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="docker-compose is not installed")
def test_docker_compose_takes_the_file(topology: Topology) -> None:
    done = subprocess.run(
        ["docker-compose", "--file", topology.file, "config", "--quiet"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _command(command: list[str], folder: Path, output: Path) -> Fork:
    """A container's command as a process in ``folder``."""
    assert command[0] == "vflens"  # its environment has no VFLENS_NETWORK
    return terminals.start(command[1:], output, folder=folder)


def _wait_until_healthy(service: dict[str, Any], folder: Path) -> None:
    """Do what its container's health check does."""
    assert service["healthcheck"]["test"][:4] == ["CMD", "python", "-m", "vflens.services.healthcheck"]
    probe = [sys.executable, *service["healthcheck"]["test"][2:]]
    eventually(lambda: serves_itself(load_party(folder / probe[-1])))
    assert subprocess.run(probe, cwd=folder, check=False, timeout=60).returncode == 0
