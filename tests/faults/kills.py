"""Kills of real processes: a dealt federation copied for each, the processes, and what they must leave."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import terminals
from cells import Undisturbed
from criterion import assert_same, assert_untouched, logged
from laboratory import deal, experiment
from world import SETTINGS, World

from vflens.config import load_party
from vflens.errors import exit_codes
from vflens.failpoints import POINTS
from vflens.services.forking.forks import Fork

ROLES = ("passive", "active", "coordinator")
SHORT = {"wait_seconds": 15, "call_seconds": 20, "step_seconds": 20, "checkpoint_steps": 2}
_MOST_SECONDS = 110  # of a batch of kills, on a loaded machine


class Folder:
    """A federation with ``settings`` dealt once, copied for each kill."""

    def __init__(self, home: Path, settings: dict[str, Any] = SETTINGS) -> None:
        self.home = home
        deal(experiment(home, **settings | {"network": {"transport": "unix"}, "limits": SHORT}), home)

    def copied(self, to: Path) -> Path:
        """The same federation below ``to``, its sockets too."""
        shutil.copytree(self.home, to)
        for file in to.glob("*/config.toml"):
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(str(self.home), str(to)), encoding="utf-8")
        return to

    def undisturbed(self, home: Path) -> Undisturbed:
        """The run below ``home`` that no kill disturbs, in this process."""
        self.copied(home)
        return Undisturbed.of([load_party(home / role / "config.toml") for role in ROLES], home)


def kill_points(undisturbed: Undisturbed) -> list[tuple[str, str, int]]:
    """Party, fail point and its most arrivals, wherever a party of the undisturbed run can be killed."""
    return [
        (who, place, most)
        for who, place, fault, most in undisturbed.places
        if fault == "kill" and place in POINTS
    ]


def serve(home: Path, role: str, fault: str) -> Fork:
    """Start the party of the federation dealt below ``home``, with this VFLENS_FAIL; "" is none."""
    command = ["serve", role, "--config", str(home / role / "config.toml")]
    return terminals.start(command, home / role / "output.log", environment={"VFLENS_FAIL": fault})


def killed(
    folder: Folder, homes: Path, faults: Sequence[tuple[str, str]]
) -> list[tuple[Path, dict[str, int]]]:
    """Run a federation for each of ``faults`` (party, VFLENS_FAIL), all at once: most of their time they wait
    for each other. The folder and the exit codes of each.
    """
    copies = [folder.copied(homes / str(number)) for number in range(len(faults))]
    with ExitStack() as ends:
        started = []
        for home, (who, fault) in zip(copies, faults, strict=True):
            started.append({role: serve(home, role, fault if role == who else "") for role in ROLES})
            for process in started[-1].values():
                ends.callback(process.kill)
        deadline = time.monotonic() + _MOST_SECONDS
        return [
            (home, {role: p.wait(deadline - time.monotonic()) for role, p in processes.items()})
            for home, processes in zip(copies, started, strict=True)
        ]


def judge(home: Path, who: str, codes: Mapping[str, int], undisturbed: Undisturbed) -> None:
    """The criterion, for processes: the others end with a numbered error in one sentence, or had ended; no
    log is touched, and the run goes on from the folders to the same bits.
    """
    words = {role: (home / role / "output.log").read_text(encoding="utf-8") for role in ROLES}
    assert codes[who] == -signal.SIGKILL, (codes, words)
    for other in set(ROLES) - {who}:
        assert codes[other] in {0, *exit_codes()} - {1}, (codes, words)
        assert "Traceback" not in words[other], words
        if codes[other]:
            assert sum(line.startswith("error: ") for line in words[other].splitlines()) == 1, words
            last = words[other].splitlines()[-1]  # it may name the second that ended
            assert any(f"'{role}'" in last for role in set(ROLES) - {other}), words
    assert_untouched(logged(home), undisturbed.bits.logs)
    configs = [load_party(home / role / "config.toml") for role in ROLES]
    with closing(World(configs, home, "plain", resume=True)) as world:
        assert_same(world.lead(), undisturbed.bits)
