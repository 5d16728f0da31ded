"""Parties that are killed and resumed: the run ends with the same bits as an undisturbed one."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
import terminals
from laboratory import estimates, transcripts
from processes import ENVIRONMENT, VFLENS, Federation, dealt, eventually, experiment_file

from vflens.services.forking.forks import Fork
from vflens.storage import journal

TIMES = ("train_seconds", "predict_seconds", "steps_per_second")
SECONDS = 200  # on a loaded machine
PARTIES = ("coordinator", "active", "passive")
LONG: dict[str, Any] = {
    "training": {"epochs": 150, "batch_size": 20},  # 600 steps: seconds, of which a kill takes one
    "attacks": [{"name": "half_star"}],
    "limits": {"wait_seconds": 60, "rejoin_seconds": 60, "checkpoint_steps": 50},
}

pytestmark = pytest.mark.timeout(300)


def results(home: Path) -> Any:
    """Transcripts, releases, estimates, and all figures but times, below ``home``."""
    figures = {
        f.parent.name: sorted(str(r) for r in pq.read_table(f).to_pylist() if r["metric"] not in TIMES)
        for f in sorted(home.glob("*/metrics.parquet"))
    }
    released = {f.parent.name: journal.digest(f) for f in sorted(home.glob("*/released"))}
    return transcripts(home), released, estimates(home), figures


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the run ends with if no party dies."""
    with dealt(tmp_path_factory.mktemp("undisturbed"), **LONG) as federation:
        federation.start()
        assert set(federation.codes(SECONDS).values()) == {0}, federation.said("coordinator")
        return results(federation.home)


def until_step(federation: Federation, count: int) -> None:
    """Wait until the active party has received ``count`` steps."""
    file = federation.home / "active/transcript/index.jsonl"
    eventually(lambda: file.read_bytes().count(b"\n") >= count, SECONDS)


def kill(federation: Federation, who: str) -> None:
    federation.processes[who].kill()
    assert federation.processes[who].wait() == -signal.SIGKILL


@pytest.mark.facts
def test_parties_killed_in_training_are_resumed(tmp_path: Path, undisturbed: Any) -> None:
    """Each twice in one run, the first time one before any checkpoint."""
    with dealt(tmp_path, **LONG) as federation:
        federation.start()
        for number, who in enumerate((*PARTIES, *PARTIES)):
            until_step(federation, 15 + 70 * number)
            kill(federation, who)
            federation.start(who, flags=["--resume"])
        codes = federation.codes(SECONDS)
        assert set(codes.values()) == {0}, {p: federation.said(p) for p in PARTIES}
        assert results(federation.home) == undisturbed


#: The party has its folder on a disk of 256 KiB; what is there in the end is copied beside it.
TINY_DISK = """mount -t tmpfs -o size=256k tmpfs "$0.disk" && cp -a "$0/." "$0.disk" &&
mount --bind "$0.disk" "$0" && "$@"; code=$?; cp -a "$0/." "$0.kept"; exit $code"""


@pytest.fixture
def _mounts() -> None:
    """Skips where this user may mount nothing."""
    tried = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("unshare -Urm may mount no tmpfs here")


def start_on_tiny_disk(federation: Federation, who: str) -> None:
    serve = [*VFLENS, "serve", federation.roles[who], "--config", str(federation.config(who))]
    command = ["unshare", "-Urm", "sh", "-c", TINY_DISK, str(federation.home / who), *serve]
    with (federation.home / who / "output.log").open("ab") as output:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=output, stderr=output)
    federation.processes[who] = process


@pytest.mark.facts
@pytest.mark.usefixtures("_mounts")
@pytest.mark.parametrize("who", ["active", "passive"])
def test_a_disk_that_is_full_and_then_larger(tmp_path: Path, undisturbed: Any, who: str) -> None:
    with dealt(tmp_path, **LONG, network={"transport": "tcp"}) as federation:
        folder = federation.home / who
        for name in ("disk", "kept"):
            Path(f"{folder}.{name}").mkdir()
        start_on_tiny_disk(federation, who)
        federation.start(*set(PARTIES) - {who})
        codes = federation.codes(SECONDS)
        assert codes[who] == 12
        assert set(codes.values()) <= {11, 12, 13}  # a peer told of it, or refused what came too late
        assert "No space left on device" in federation.said(who)
        assert all("Traceback" not in federation.said(party) for party in PARTIES)
        shutil.rmtree(folder)
        Path(f"{folder}.kept").rename(folder)
        federation.start(*PARTIES, flags=["--resume"])
        codes = federation.codes(SECONDS)
        assert set(codes.values()) == {0}, {p: federation.said(p) for p in PARTIES}
        assert results(federation.home) == undisturbed


def test_a_launched_run_is_resumed_and_restarts_its_parties(tmp_path: Path, undisturbed: Any) -> None:
    """The launcher is killed; the resumed run loses a party, which it starts again."""
    home = tmp_path / "runs/tiny/run"
    index = home / "active/transcript/index.jsonl"

    def received() -> int:
        return index.read_bytes().count(b"\n")

    with launched(tmp_path / "said", "run", str(experiment_file(tmp_path, **LONG))) as launcher:
        eventually(lambda: received() >= 20, SECONDS)
        children = psutil.Process(launcher.pid).children(recursive=True)
        launcher.kill()
        assert not psutil.wait_procs(children, timeout=SECONDS)[1]
    with launched(tmp_path / "said", "resume", str(tmp_path / "runs/tiny"), "--restart", "1") as again:
        before = received()
        eventually(lambda: received() >= before + 20, SECONDS)
        parties = psutil.Process(again.pid).children(recursive=True)
        next(c for c in parties if "passive" in c.cmdline()).kill()
        assert again.wait(SECONDS) == 0
    assert results(home)[0] == undisturbed[0]


@contextmanager
def launched(output: Path, *arguments: str) -> Iterator[Fork]:
    """A command with party processes, which end with it."""
    process = terminals.start(list(arguments), output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
