"""Peak memory of the parties' processes."""

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
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, OSError, ValueError, IndexError):  # it ended meanwhile
                command = child.cmdline()
                status = Path(f"/proc/{child.pid}/status").read_text(encoding="utf-8")
                peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
                peaks[Path(command[command.index("--config") + 1]).parent.name] = int(peak) / 1024
        time.sleep(0.05)
