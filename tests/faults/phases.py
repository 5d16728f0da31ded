"""Kills of real processes in each phase of a run; the party is started again while the others wait for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from cells import Undisturbed
from criterion import assert_same
from laboratory import deal, experiment
from processes import ENVIRONMENT
from world import KINDS, World

from vflens.config import load_party

ROLES = ("passive", "active", "coordinator")
SECONDS = 200.0  # on a loaded machine
LIMITS = {"wait_seconds": SECONDS, "rejoin_seconds": SECONDS, "checkpoint_steps": 2}
DIRECT = KINDS["active aggregates"]
RUNS: dict[str, dict[str, Any]] = {
    "lr": KINDS["whole transcript"],
    "stale": DIRECT | {"training": {**DIRECT["training"], "staleness": 1}},
}
#: Phase → run, and who is killed where: the first of each phase in `make test`, all in `make soak`.
PHASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "align": ("lr", [("passive", "Identify.answered:1"), ("active", "Salt.answered:1")]),
    "prepare": (
        "lr",
        [
            ("active", "order.npz.written:1"),
            ("passive", "Prepare.answered:1"),
            ("coordinator", "rows.npz.begun:1"),
        ],
    ),
    "disclose": ("lr", [("passive", "Disclose.answered:1"), ("active", "Deliver.asked:1")]),
    "predict": ("lr", [("coordinator", "Predict.answered:1"), ("passive", "Forward.answered:1")]),
    "attack": ("lr", [("passive", "Submission.answered:1"), ("coordinator", "Finished.answered:1")]),
    "end": ("lr", [("passive", "Stop.answered:1"), ("active", "Stop.answered:1")]),
    "stale training": ("stale", [("active", "settled:3"), ("passive", "Step.answered:4")]),
}


class Reborn:
    """The processes of ``reborn.py``: of each job the one that lives now."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program
        self.processes: dict[int, int] = {}

    def read(self) -> list[list[int]] | None:
        """Take a line; the exit codes of all jobs if it is the last."""
        assert self._program.stdout is not None
        found = json.loads(self._program.stdout.readline())
        if isinstance(found[0], list):
            return list(found)
        self.processes[found[0]] = found[1]
        return None

    def codes(self) -> list[list[int]]:
        """The exit codes of each job, once all have ended."""
        while (found := self.read()) is None:
            pass
        return found


@contextmanager
def reborn(homes: list[tuple[Path, str, str]]) -> Iterator[Reborn]:
    """The federations dealt below these folders; in each one party has a fault at its first start."""
    jobs = [
        (role, str(home / role / "config.toml"), f"{fault}:kill" if role == who else "")
        for home, who, fault in homes
        for role in ROLES
    ]
    command = [sys.executable, str(Path(__file__).with_name("reborn.py")), json.dumps(jobs)]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, start_new_session=True, text=True
    ) as program:
        try:
            yield Reborn(program)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def dealt(home: Path, kind: str, **more: Any) -> Path:
    """A federation of this kind below ``home``, whose parties go on when they are started again."""
    settings = RUNS[kind] | {"network": {"transport": "unix"}, "limits": LIMITS} | more
    for file in deal(experiment(home, **settings), home).values():
        file.write_text(f"resume = true\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    return home


def undisturbed_run(home: Path, kind: str) -> Undisturbed:
    """The run of this kind below ``home``, in one process, in which no party is killed."""
    dealt(home, kind)
    configs = [load_party(home / role / "config.toml") for role in ROLES]
    return Undisturbed.of(configs, home / "run")


def judge(home: Path, codes: dict[str, list[int]], who: str, undisturbed: Undisturbed) -> None:
    """``who`` was killed once, all ended well, and the run has the undisturbed one's bits."""
    said = {role: (home / role / "output.log").read_text(encoding="utf-8") for role in ROLES}
    due = {role: [-signal.SIGKILL, 0] if role == who else [0] for role in ROLES}
    assert codes == due, said
    configs = [load_party(home / role / "config.toml") for role in ROLES]
    with closing(World(configs, home, "plain", resume=True)) as world:
        assert_same(world.lead(), undisturbed.bits)


def killed(
    tmp_path: Path, faults: list[tuple[str, str, str]], undisturbed: Callable[[str], Undisturbed]
) -> None:
    homes = [dealt(tmp_path / str(i), PHASES[phase][0]) for i, (phase, _, _) in enumerate(faults)]
    with reborn(
        [(home, who, fault) for home, (_, who, fault) in zip(homes, faults, strict=True)]
    ) as federations:
        codes = iter(federations.codes())
    for home, (phase, who, fault) in zip(homes, faults, strict=True):
        try:
            judge(home, {role: next(codes) for role in ROLES}, who, undisturbed(PHASES[phase][0]))
        except AssertionError as error:
            error.add_note(f"{phase}: {who} {fault}")
            raise
