"""docker-compose.yml on a real engine: what a container may do, and the bits of local processes.

``make containers`` runs it; it is skipped where no engine answers. tests/engine.sh makes an engine.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from processes import ENVIRONMENT, VFLENS

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
PARTIES = ("active", "coordinator", "passive")
pytestmark = [pytest.mark.facts, pytest.mark.timeout(1800)]

Compose = Callable[..., subprocess.CompletedProcess[bytes]]

#: What a process in a container finds of itself, as JSON.
INSIDE = """
import json, os, pathlib
def writes(folder):
    try:
        pathlib.Path(folder, "probe").write_text("")
    except OSError as error:
        return error.strerror
    pathlib.Path(folder, "probe").unlink()
    return "written"
status = dict(line.split(":", 1) for line in open("/proc/1/status"))
print(json.dumps({
    **{folder: writes(folder) for folder in ("/", "/vflens", "/home/vflens", "parties/passive")},
    "user": os.getuid(),
    "capabilities": int(status["CapEff"], 16),
    "first": status["Name"].strip(),
    "shell": os.access("/bin/sh", os.X_OK),
    "of others": os.listdir("parties/active"),
}))
"""


#: The folders of all parties, as a tar file.
PACK = """
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    archive.add("parties")
"""

#: Nothing can start a shell: neither the parties' commands nor their health checks need one.
NO_SHELL = {"volumes": [f"/dev/null:/bin/{shell}:ro" for shell in ("dash", "bash")]}


def _command(folder: Path) -> list[str]:
    """The client of an engine that answers; a skipped test without one."""
    masked = folder / "no_shell.yml"
    services = dict.fromkeys(SERVICES, NO_SHELL)
    masked.write_text(yaml.safe_dump({"services": services}), "utf-8")
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]):
            files = ["--file", str(ROOT / "docker-compose.yml"), "--file", str(masked)]
            command = [*words, "--project-name", "vflens-test", *files]
            asked = subprocess.run([*command, "ps"], cwd=ROOT, capture_output=True, check=False, timeout=60)
            if asked.returncode == 0:
                return command
    pytest.skip("no container engine answers")


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """A built image; containers, networks and volumes are removed at the end."""
    command = _command(tmp_path_factory.mktemp("compose"))

    def run(*words: str, seconds: float = 120, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, check=False, timeout=seconds)
        assert not (check and done.returncode), (words, done.stdout[-2000:], done.stderr[-2000:])
        return done

    try:
        run("build", "dealer", seconds=1500)
        yield run
    finally:
        run("down", "--volumes", check=False)


def _bits(folder: Path) -> dict[str, bytes]:
    """What crossed the wire, and what attacks made of it."""
    found = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.parent.name in ("transcript", "released") and file.is_file():
            found[name] = file.read_bytes()
        elif file.parent.name == "estimates":
            with np.load(file) as arrays:
                found[name] = b"".join(key.encode() + arrays[key].tobytes() for key in sorted(arrays))
    return found


def test_confined_containers_one_of_them_killed_give_the_bits_of_local_processes(
    compose: Compose, tmp_path: Path
) -> None:
    compose("up", "--detach", "--no-build", "passive", "active")  # they wait for the coordinator
    for party in ("passive", "active"):
        _wait_until_healthy(compose, party)
    _check_confined(json.loads(compose("exec", "-T", "passive", "python", "-c", INSIDE).stdout))
    compose("up", "--detach", "--no-build", "--no-deps", "coordinator")
    _kill_in_training(compose, "passive")
    _wait_until_complete(compose)
    packed = compose("run", "--rm", "-T", "dealer", "python", "-c", PACK).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path, filter="data")
    local = ["run", "examples/compose.toml", "--out", str(tmp_path / "local")]
    subprocess.run([*VFLENS, *local], cwd=ROOT, env=ENVIRONMENT, check=True, capture_output=True, timeout=300)
    expected = _bits(tmp_path / "local/compose/run")
    assert {name.split("/")[0] for name in expected} == set(PARTIES)
    assert any("estimates" in name for name in expected)
    found = _bits(tmp_path / "parties")
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


def _wait_until_healthy(compose: Compose, party: str) -> None:
    """By the health check itself: an engine without a timer never runs it."""
    until = time.monotonic() + 60
    check = ("exec", "-T", party, *SERVICES[party]["healthcheck"]["test"][1:])
    while compose(*check, check=False).returncode:
        assert time.monotonic() < until, f"{party} never became healthy"
        time.sleep(0.5)


def _kill_in_training(compose: Compose, party: str) -> None:
    """Kill as the kernel would: an engine that is asked to kill a container does not restart it."""
    first = _state(compose, party)
    steps = Path(f"/proc/{first['Pid']}/root/vflens/parties/{party}/recovery/steps.bin")
    until = time.monotonic() + 120
    while not (steps.exists() and steps.stat().st_size > 0):
        assert time.monotonic() < until, f"{party} never learned a step"
        time.sleep(0.01)
    os.kill(int(first["Pid"]), signal.SIGKILL)
    while (now := _state(compose, party)) == first or not now["Running"]:
        assert time.monotonic() < until, f"{party} was not restarted: {now}"
        time.sleep(0.5)


def _state(compose: Compose, party: str) -> dict[str, Any]:
    """The state of a party's container: its Pid, and whether it is Running."""
    container = compose("ps", "--quiet", party).stdout.decode().strip()
    client = (
        ["docker"] if shutil.which("docker") else ["podman", "--remote", "--url", os.environ["DOCKER_HOST"]]
    )
    asked = [*client, "inspect", "--format", "{{json .State}}", container]
    found = json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout)
    return {name: found[name] for name in ("Pid", "Running")}


def _wait_until_complete(compose: Compose) -> None:
    until = time.monotonic() + 300
    while b"the run is complete" not in (text := compose("logs", "coordinator").stdout):
        assert time.monotonic() < until, text[-2000:]
        time.sleep(1)
    while any(_state(compose, party)["Running"] for party in PARTIES):
        assert time.monotonic() < until, "a container did not end"
        time.sleep(1)


def _check_confined(found: dict[str, object]) -> None:
    """Podman gives a read-only container /tmp in memory, Docker none."""
    closed = {folder: found.pop(folder) for folder in ("/", "/vflens", "/home/vflens")}
    assert set(closed.values()) == {"Read-only file system"}
    assert found.pop("parties/passive") == "written"
    assert found == {"shell": False, "user": 10001, "capabilities": 0, "first": "vflens", "of others": []}
