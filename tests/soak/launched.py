"""A command of ``vflens`` whose processes are killed at moments that a seed draws, from their start on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from vflens.services.forking.forks import Forks

LAUNCHER, FORKS = "the launcher", "the process that forks parties"
_SECONDS = 150.0  # the most of a command, on a loaded machine
_LOOK_SECONDS = 0.005
_EARLY = 0.4  # the share of kills that follow the start of their process, and the seconds in which they do


class Kill(NamedTuple):
    """``seconds`` after the next start of ``who``, or where not ``early`` after the kill before this one."""

    who: str
    early: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.who} {self.seconds:.2f} s after {'its start' if self.early else 'the kill before'}"


def drawn(victims: Sequence[str], seed: int, seconds: float) -> Iterator[Kill]:
    """Kills without end, for a run that takes ``seconds`` undisturbed."""
    rng = np.random.default_rng(seed)
    while True:
        who, early = victims[int(rng.integers(len(victims)))], bool(rng.random() < _EARLY)
        yield Kill(who, early, float(rng.uniform(0, _EARLY if early else seconds / 2)))


class Command:
    """``vflens`` with ``arguments``, forked by ``forks``, and the processes that it starts; its words go to
    ``output``.
    """

    def __init__(self, forks: Forks, arguments: Sequence[str], output: Path) -> None:
        with output.open("ab") as text:
            self._fork = forks.start(arguments, text.fileno())
        self.began = time.monotonic()
        self.found: set[str] = set()  # who had a process
        self._killed: dict[str, int] = {}  # who → its last process that was killed
        self._started: dict[int, psutil.Process] = {}

    def running(self) -> bool:
        """Whether the command goes on.

        Raises:
            AssertionError: it does for too long.
        """
        assert time.monotonic() < self.began + _SECONDS, f"it still runs after {_SECONDS:g} s"
        return self._fork.poll() is None

    def kill(self, kill: Kill) -> bool:
        """Do it; False where the command ends before."""
        since, waiting = time.monotonic(), kill.early
        while self.running():
            process = self._processes().get(kill.who)
            if waiting and process is not None and process != self._killed.get(kill.who):
                since, waiting = time.monotonic(), False
            if process is not None and not waiting and time.monotonic() - since >= kill.seconds:
                self._killed[kill.who] = process
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                return True
            time.sleep(_LOOK_SECONDS)
        return False

    def code(self) -> int:
        """Its exit code, once all that it started has ended as well.

        Raises:
            AssertionError: a process outlives it.
        """
        while self.running():
            self._processes()
            time.sleep(20 * _LOOK_SECONDS)
        left = psutil.wait_procs(list(self._started.values()), timeout=_SECONDS)[1]
        assert not left, f"{left} outlive the launcher"
        return self._fork.wait()

    def end(self) -> None:
        """Leave no process behind."""
        self._fork.kill()
        for process in self._started.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _processes(self) -> dict[str, int]:
        """Who runs now, as which process."""
        found = {LAUNCHER: self._fork.pid}
        for forking in _children(self._fork.pid):
            found[FORKS] = self._noted(forking)
            for party in _children(forking):
                found[_party(party)] = self._noted(party)
        self.found |= found.keys()
        return found

    def _noted(self, process: int) -> int:
        if process not in self._started:
            with suppress(psutil.NoSuchProcess):
                self._started[process] = psutil.Process(process)
        return process


def _children(process: int) -> list[int]:
    """Those that any of its threads started."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def _party(process: int) -> str:
    """Its name, by the folder of its output; "" before it has one, and after its end."""
    with suppress(OSError):
        output = Path(f"/proc/{process}/fd/1").readlink()
        if output.name == "output.log":
            return output.parent.name
    return ""
