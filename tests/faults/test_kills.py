"""Thirty kills of real processes: the others end with a numbered error, no log is touched, and the run goes
on from the folders to the undisturbed run's bits.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from cells import Undisturbed
from criterion import assert_same, assert_untouched, logged
from laboratory import deal, experiment
from processes import ENVIRONMENT
from world import SETTINGS, World, quick

from vflens.config import load_party
from vflens.errors import exit_codes
from vflens.failpoints import POINTS

ROLES = ("passive", "active", "coordinator")
KILLS, AT_A_TIME = 30, 5
SHORT = {"wait_seconds": 15, "call_seconds": 20, "step_seconds": 20, "checkpoint_steps": 2}


class Folder:
    """A federation dealt once, copied for each kill."""

    def __init__(self, home: Path) -> None:
        self.home = home
        deal(experiment(home, **SETTINGS | {"network": {"transport": "unix"}, "limits": SHORT}), home)

    def copied(self, to: Path) -> Path:
        """The same federation below ``to``, its sockets too."""
        shutil.copytree(self.home, to)
        for file in to.glob("*/config.toml"):
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(str(self.home), str(to)), encoding="utf-8")
        return to


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("dealt"))


@pytest.fixture(scope="module")
def undisturbed(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    home = folder.copied(tmp_path_factory.mktemp("undisturbed") / "run")
    with quick():
        yield Undisturbed.of([load_party(home / role / "config.toml") for role in ROLES], home)


def kills(undisturbed: Undisturbed) -> list[tuple[str, str]]:
    """Party and fault of each kill, spread over all fail points."""
    rng = np.random.default_rng(7)
    points = [
        (who, place, most)
        for who, place, fault, most in undisturbed.places
        if fault == "kill" and place in POINTS
    ]
    chosen = points[:: len(points) // KILLS][:KILLS]
    return [(who, f"{place}:{rng.integers(most) + 1}:kill") for who, place, most in chosen]


@pytest.mark.parametrize("first", range(0, KILLS, AT_A_TIME))
def test_killed(tmp_path: Path, folder: Folder, undisturbed: Undisturbed, first: int) -> None:
    """So many at a time: most of their time they wait for each other."""
    chosen = kills(undisturbed)[first:][:AT_A_TIME]
    assert len(chosen) == AT_A_TIME
    homes = [folder.copied(tmp_path / str(i)) for i in range(AT_A_TIME)]
    jobs = [
        (role, str(home / role / "config.toml"), fault if role == who else "")
        for home, (who, fault) in zip(homes, chosen, strict=True)
        for role in ROLES
    ]
    codes = iter(run(jobs))
    for home, (who, fault) in zip(homes, chosen, strict=True):
        judge(home, who, fault, {role: next(codes) for role in ROLES}, undisturbed)


def run(jobs: list[tuple[str, str, str]]) -> list[int]:
    """The exit codes of these party processes, all started at once."""
    program = str(Path(__file__).with_name("zygote.py"))
    command = [sys.executable, program, json.dumps(jobs)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, start_new_session=True) as zygote:
        try:
            said, _ = zygote.communicate(timeout=110)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(zygote.pid, signal.SIGKILL)  # no party outlives the test
    found: list[int] = json.loads(said)
    return found


def judge(home: Path, who: str, fault: str, codes: dict[str, int], undisturbed: Undisturbed) -> None:
    """The criterion, for processes."""
    said = {role: (home / role / "output.log").read_text(encoding="utf-8") for role in ROLES}
    assert codes[who] == -signal.SIGKILL, (fault, codes, said)
    for other in set(ROLES) - {who}:
        assert codes[other] in {0, *exit_codes()} - {1}, (fault, codes, said)
        assert "Traceback" not in said[other], (fault, said)
    assert_untouched(logged(home), undisturbed.bits.logs)
    configs = [load_party(home / role / "config.toml") for role in ROLES]
    with closing(World(configs, home, "plain", resume=True)) as world:
        assert_same(world.lead(), undisturbed.bits)
