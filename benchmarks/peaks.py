"""Memory and processor time of the parties' processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import psutil


@contextmanager
def watching() -> Iterator[dict[str, float]]:
    """Party → the most MiB that its process ever held, of the runs inside."""
    peaks: dict[str, float] = {}
    over = Event()
    watcher = Thread(target=_watch, args=(peaks, over))
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _watch(peaks: dict[str, float], over: Event) -> None:
    while not over.is_set():
        peaks.update(_mib("status", "VmHWM:"))
        time.sleep(0.05)


def shares() -> dict[str, float]:
    """Party → MiB that its process holds now: its proportional set size, in which memory that processes share
    is divided among them.
    """
    return _mib("smaps_rollup", "Pss:")


def processor_seconds() -> float:
    """Processor time so far of all processes that this one started and that still run."""
    return sum(sum(c.cpu_times()[:2]) for c in psutil.Process().children(recursive=True))


def _mib(file: str, field: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, OSError, ValueError, IndexError, StopIteration):  # it ended meanwhile
            command = child.cmdline()
            party = Path(command[command.index("--config") + 1]).parent.name
            facts = Path(f"/proc/{child.pid}/{file}").read_text(encoding="utf-8").splitlines()
            found[party] = int(next(line for line in facts if line.startswith(field)).split()[1]) / 1024
    return found
