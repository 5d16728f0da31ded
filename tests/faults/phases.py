"""Kills of real processes in each phase of a run; the party is started again while the others wait for it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cells import Undisturbed
from criterion import assert_same
from kills import ROLES, serve
from laboratory import deal, experiment
from processes import eventually
from world import KINDS, World

from vflens.config import load_party

SECONDS = 200.0  # on a loaded machine
LIMITS = {"wait_seconds": SECONDS, "rejoin_seconds": SECONDS, "checkpoint_steps": 2}
DIRECT = KINDS["active aggregates"]
RUNS: dict[str, dict[str, Any]] = {
    "lr": KINDS["whole transcript"],
    "psi": KINDS["sampled transcript"],
    "shares": KINDS["protected training"],
    "number": KINDS["number on shares"],
    "stale": DIRECT | {"training": {**DIRECT["training"], "staleness": 1}},
}
ON_SHARES = [
    ("passive", "digests.bin.written:7"),
    ("active", "digests.bin.written:5"),
    ("active", "Train.asked:1"),
    ("passive", "Step.answered:4"),
    ("passive", "Seed.answered:1"),
    ("coordinator", "Deal.answered:1"),
]
#: Phase → run, and who is killed where: the first of each in `make test` or `make facts`, all in `make soak`.
PHASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "align": ("lr", [("passive", "Identify.answered:1"), ("active", "Salt.answered:1")]),
    "blind": (
        "psi",
        [
            ("passive", "Blind.answered:1"),
            ("active", "blinded.json.written:2"),
            ("active", "Identify.answered:1"),
            ("coordinator", "federation.json.begun:1"),
        ],
    ),
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
    "step on shares": ("shares", ON_SHARES),
    "step of a number on shares": ("number", ON_SHARES[::-1]),
    "stale training": ("stale", [("active", "settled:3"), ("passive", "Step.answered:4")]),
}


class Reborn:
    """The parties of federations dealt below folders, each started again whenever it is killed; in each
    federation one party has a fault at its first start.
    """

    def __init__(self, homes: Sequence[tuple[Path, str, str]]) -> None:
        self._jobs = [(home, role) for home, _, _ in homes for role in ROLES]
        faults = [f"{fault}:kill" if role == who else "" for _, who, fault in homes for role in ROLES]
        self.processes = [serve(*job, fault) for job, fault in zip(self._jobs, faults, strict=True)]
        self._codes: list[list[int]] = [[] for _ in homes for _ in ROLES]

    def look(self) -> bool:
        """Start again who was killed; whether all have ended."""
        for number, process in enumerate(self.processes):
            if process.returncode is None and (code := process.poll()) is not None:
                self._codes[number].append(code)
                if code < 0:
                    self.processes[number] = serve(*self._jobs[number], "")
        return all(process.returncode is not None for process in self.processes)

    def codes(self) -> list[list[int]]:
        """The exit codes of each party, once all have ended."""
        eventually(self.look, SECONDS)
        return self._codes


@contextmanager
def reborn(homes: Sequence[tuple[Path, str, str]]) -> Iterator[Reborn]:
    """Those of these folders, parties and faults; no process outlives the context."""
    made = Reborn(homes)
    try:
        yield made
    finally:
        for process in made.processes:
            process.kill()


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
    text = {role: (home / role / "output.log").read_text(encoding="utf-8") for role in ROLES}
    due = {role: [-signal.SIGKILL, 0] if role == who else [0] for role in ROLES}
    assert codes == due, text
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
