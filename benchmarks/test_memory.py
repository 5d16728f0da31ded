"""Peak memory of a party's process against its data (features as float64): the table, ids, digests, messages.

Measured with 20 columns a party: 2.2 × its data at a passive party, 2.9 × at the active one, beside what a small run takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pytest

from benchmarks.federation import experiment
from experiments.run import run

SMALL, LARGE, FEATURES = 1_000, 400_000, 40
MIB = 2**20


@pytest.mark.benchmark(group="memory")
def test_peak_memory_of_the_parties(benchmark: Any, tmp_path: Path) -> None:
    peaks = benchmark.pedantic(lambda: [_peaks(tmp_path / str(n), n) for n in (SMALL, LARGE)], rounds=1)
    data = (LARGE - SMALL) * FEATURES / 2 * 8 / MIB
    print(
        f"\npeak memory, {LARGE:,} rows of {FEATURES // 2} columns a data party ({data:.0f} MiB as float64)"
    )
    for party, peak in sorted(peaks[1].items()):
        base = peaks[0][party]
        print(
            f"  {party:<12} {peak:6.0f} MiB; {base:4.0f} of them for {SMALL:,} rows; {(peak - base) / data:.1f} × its data"
        )
    benchmark.extra_info.update({"small": peaks[0], "large": peaks[1], "data_mib": data})


def _peaks(out: Path, rows: int) -> dict[str, float]:
    """Role → the most MiB that its process ever held."""
    with _watching() as peaks:
        run(experiment(out, rows=rows, batch=1024, epochs=1, features=FEATURES))
    return peaks


@contextmanager
def _watching() -> Iterator[dict[str, float]]:
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
        for child in psutil.Process().children():
            with suppress(psutil.Error, OSError, ValueError, IndexError):  # it ended meanwhile
                command = child.cmdline()
                status = Path(f"/proc/{child.pid}/status").read_text(encoding="utf-8")
                peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
                peaks[command[command.index("serve") + 1]] = int(peak) / 1024
        time.sleep(0.05)
