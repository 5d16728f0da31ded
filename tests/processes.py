"""Party processes for tests: dealt, started, watched, and never left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import terminals
import tomli_w

from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.services.forking.forks import Fork
from vflens.services.waiting import Waits

VFLENS = [sys.executable, "-m", "vflens.cli.main"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("VFLENS")}
SLOW = {"epochs": 1_000_000, "batch_size": 20}  # never ends by itself


def experiment_file(folder: Path, **changes: Any) -> Path:
    """An experiment on 90 made-up rows, over sockets, that takes well under a second once it runs."""
    settings: dict[str, Any] = {
        "name": "tiny",
        "seed": 3,
        "out": str(folder / "runs"),
        "data": {"name": "synthetic", "rows": 90, "features": 8, "classes": 3, "informative": 4},
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3, "batch_size": 20},
        "attacks": [{"name": "half"}],
        "limits": {"wait_seconds": 60, "call_seconds": 60, "step_seconds": 60, "epochs": SLOW["epochs"]},
        "network": {"transport": "unix"},
    }
    file = folder / "experiment.toml"
    file.write_text(tomli_w.dumps(settings | changes), encoding="utf-8")
    return file


def change(config: Path, **changes: Any) -> None:
    """Set keys of a dealt configuration."""
    settings = tomllib.loads(config.read_text(encoding="utf-8"))
    config.write_text(tomli_w.dumps(settings | changes), encoding="utf-8")


#: The next command has signals as a terminal has them, even where the tests run in the background.
ATTENDED = [
    sys.executable,
    "-c",
    "import os, signal, sys\n"
    "for n in (signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
]


@dataclass
class Federation:
    """The dealt folder of every party, and the processes started from them."""

    home: Path
    roles: Mapping[str, str]
    processes: dict[str, Fork | subprocess.Popen[bytes]] = field(default_factory=dict)

    def config(self, party: str) -> Path:
        return self.home / party / "config.toml"

    def start(self, *parties: str, flags: Sequence[str] = (), **how: Any) -> None:
        """Start these parties, all without a name, with ``flags``; their words are in ``output.log``."""
        for party in parties or tuple(self.roles):
            serve = ["serve", self.roles[party], "--config", str(self.config(party)), *flags]
            self.processes[party] = terminals.start(serve, self.home / party / "output.log", **how)

    def codes(self, seconds: float = 100) -> dict[str, int]:
        """Everybody's exit code, once all have ended."""
        deadline = time.monotonic() + seconds
        return {p: c.wait(max(0.1, deadline - time.monotonic())) for p, c in self.processes.items()}

    def said(self, party: str) -> str:
        return (self.home / party / "output.log").read_text(encoding="utf-8")

    def status(self, party: str) -> dict[str, str]:
        """State and reason in its ``status.json``, without the heads of its logs."""
        found = json.loads((self.home / party / "status.json").read_text(encoding="utf-8"))
        return {name: found[name] for name in ("state", "reason")}

    def until_training(self) -> None:
        """Wait until every party's transcript has reached its disk."""
        files = [self.home / party / "transcript/payload.bin" for party in self.roles]
        eventually(lambda: all(f.stat().st_size > 0 for f in files))

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


def waited(waits: Waits) -> None:
    """Let a party alone go on until it ends."""
    for event, seconds in waits:
        event.wait(seconds)


def eventually(true: Callable[[], bool], seconds: float = 100) -> None:
    """Wait until ``true()``; files that are not there yet count as false."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if true():
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    raise AssertionError("it never came")


@contextmanager
def dealt(folder: Path, **changes: Any) -> Iterator[Federation]:
    """The dealt federation of :func:`experiment_file`."""
    with dealt_from(load_experiment(experiment_file(folder, **changes)), folder / "dealt") as federation:
        yield federation


@contextmanager
def dealt_from(experiment: Experiment | HorizontalExperiment, home: Path) -> Iterator[Federation]:
    """A federation dealt below ``home``; whatever happens, its processes are gone afterwards."""
    write_parties(experiment, experiment.scenarios[0], deal_tables(experiment), home)
    roles = {party: str(role) for party, role in experiment.roles().items()}
    federation = Federation(home, roles)
    try:
        yield federation
    finally:
        federation.kill()


def forked(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """What the command line, in a forked process, ended with and printed; ``how`` as of a terminal."""
    with tempfile.TemporaryDirectory() as words:
        out, err = Path(words, "out"), Path(words, "err")
        process = terminals.start(list(arguments), out, errors=err, **how)
        code = process.wait(60)
        texts = (file.read_text(encoding="utf-8") for file in (out, err))
        return subprocess.CompletedProcess(arguments, code, *texts)


def vflens(
    *arguments: str, code: int = 0, cwd: Path | None = None, entry: str = VFLENS[-1], **environment: str
) -> subprocess.CompletedProcess[str]:
    """``vflens``, or another ``entry``, in a process of its own, to its end, which must be ``code``."""
    done = forked(*arguments, folder=cwd, entry=entry, environment=environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def assert_finished(federation: Federation) -> None:
    assert federation.codes() == dict.fromkeys(federation.roles, 0), {
        p: federation.said(p) for p in federation.roles
    }
    for party in federation.roles:
        assert federation.status(party) == {"state": "finished", "reason": ""}
        assert "results are in" in federation.said(party)
