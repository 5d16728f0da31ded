"""Many clients with many columns, and many rows in one process, beside an earlier commit.

``AGAINST`` names that commit. Both run in turn, as processes of their own; figures are processor seconds with
all children, and the most memory of all processes together (their shares, PSS). ``VFLENS_MANY`` is the number
of clients, of 300 rows each, 20 by default: the page has 200. MNIST lies in ``VFLENS_DATA``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
import tomli_w

from benchmarks.guard import _unpacked
from benchmarks.ratios import alternate, report

HERE = Path(__file__).parents[1]
CLIENTS = int(os.environ.get("VFLENS_MANY", "20"))
MANY = {
    "name": "many",
    "data": {"name": "mnist", "sample": 300 * CLIENTS},
    "parties": {"clients": CLIENTS},
    "horizontal": {"rounds": 2, "weights": "equal"},
    "training": {"batch_size": 64, "learning_rate": 0.001},
    "limits": {"wait_seconds": 600, "call_seconds": 600, "step_seconds": 600},
}
ROWS = {
    "name": "rows",
    "data": {"name": "synthetic", "rows": 5_000 * CLIENTS, "features": 10, "classes": 2},
    "split": {"kind": "fraction", "fraction": 0.5},
    "training": {"epochs": 1, "batch_size": 4096, "learning_rate": 0.01},
}


@pytest.mark.benchmark(group="many")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("what", "flags"), [("clients", ()), ("clients", ("--in-process",)), ("rows", ("--in-process",))]
)
def test_many(benchmark: Any, tmp_path: Path, what: str, flags: tuple[str, ...]) -> None:
    file = tmp_path / f"{what}.toml"
    file.write_text(tomli_w.dumps(MANY if what == "clients" else ROWS), encoding="utf-8")
    shares: dict[str, float] = {}
    sides = {"earlier": _unpacked(os.environ.get("AGAINST", "c609465d"), tmp_path), "now": HERE}
    command = [sys.executable, "-m", "vflens.cli.main", "run", str(file), *flags]
    candidates = {
        name: _measured(name, [*command, "--out", str(tmp_path / name)], checkout, shares)
        for name, checkout in sides.items()
    }
    figures = benchmark.pedantic(lambda: alternate(candidates, 2), rounds=1)
    report(benchmark, f"{what} {' '.join(flags)}: processor time", figures, "earlier", "s")
    print(f"  most memory: {', '.join(f'{name} {gib:.2f} GiB' for name, gib in shares.items())}")


def _measured(name: str, command: list[str], checkout: Path, shares: dict[str, float]) -> Callable[[], float]:
    def measure() -> float:
        before = _spent()
        environment = os.environ | {"PYTHONPATH": str(checkout)}  # and cwd: Python looks there first
        process = subprocess.Popen(command, env=environment, cwd=checkout, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            shares[name] = max(shares.get(name, 0.0), sum(_shares(process.pid)) / 2**20)
            time.sleep(2)
        assert process.returncode == 0
        return _spent() - before

    return measure


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shares(process: int) -> Iterator[int]:
    """KiB of each process that ``process`` started, and its own."""
    try:
        family = [psutil.Process(process), *psutil.Process(process).children(recursive=True)]
    except psutil.Error:
        return
    for one in family:
        try:
            lines = Path(f"/proc/{one.pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        facts: Mapping[str, str] = dict(line.split(":", 1) for line in lines if ":" in line)
        yield int(facts.get("Pss", "0").split()[0])
