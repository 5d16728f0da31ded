"""Many clients with many columns, beside an earlier commit and Flower, and many rows in one process.

``AGAINST`` names that commit. All run in turn, as processes of their own; figures are processor seconds with
all children, and the most memory of all processes together (their shares, PSS). ``VFLENS_MANY`` is the number
of clients, of 300 rows each, 20 by default: the page has 200. MNIST lies in ``VFLENS_DATA``.
``VFLENS_FLOWER`` is the Python of an environment with flwr[simulation], such as that of `make flower-check`;
``VFLENS_TURNS`` counts the turns, 2 by default.
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

import numpy as np
import psutil
import pytest
import tomli_w

from benchmarks.guard import _unpacked
from benchmarks.ratios import alternate, report
from vflens.registry import DATASETS

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


FLOWER = HERE / "benchmarks/elsewhere/flower_many.py"
TURNS = int(os.environ.get("VFLENS_TURNS", "2"))
Shares = dict[str, float]


@pytest.mark.benchmark(group="many")
@pytest.mark.timeout(3600)
def test_many_clients(benchmark: Any, tmp_path: Path) -> None:
    file, shares = _written(tmp_path, MANY), Shares()
    earlier = _unpacked(os.environ.get("AGAINST", "c609465d"), tmp_path)
    candidates = {
        "earlier": _measured("earlier", _run(file, tmp_path), earlier, shares),
        "now": _measured("now", _run(file, tmp_path), HERE, shares),
        "now, in process": _measured("now, in process", _run(file, tmp_path, "--in-process"), HERE, shares),
    }
    if "VFLENS_FLOWER" in os.environ:
        command = [os.environ["VFLENS_FLOWER"], str(FLOWER), *_arrays(tmp_path), str(CLIENTS)]
        candidates["Flower"] = _measured("Flower", command, tmp_path, shares)
    _compared(benchmark, "clients", candidates, shares)


@pytest.mark.benchmark(group="many")
@pytest.mark.timeout(3600)
def test_many_rows(benchmark: Any, tmp_path: Path) -> None:
    file, shares = _written(tmp_path, ROWS), Shares()
    sides = {"earlier": _unpacked(os.environ.get("AGAINST", "c609465d"), tmp_path), "now": HERE}
    candidates = {
        name: _measured(name, _run(file, tmp_path, "--in-process"), checkout, shares)
        for name, checkout in sides.items()
    }
    _compared(benchmark, "rows", candidates, shares)


def _compared(
    benchmark: Any, what: str, candidates: Mapping[str, Callable[[], float]], shares: Shares
) -> None:
    figures = benchmark.pedantic(lambda: alternate(candidates, TURNS), rounds=1)
    report(benchmark, f"{what}: processor time, load {os.getloadavg()[0]:.0f}", figures, "earlier", "s")
    print(f"  most memory: {', '.join(f'{name} {gib:.2f} GiB' for name, gib in shares.items())}")


def _written(folder: Path, experiment: Mapping[str, Any]) -> Path:
    file = folder / "experiment.toml"
    file.write_text(tomli_w.dumps(experiment), encoding="utf-8")
    return file


def _run(file: Path, folder: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "vflens.cli.main", "run", str(file), *flags, "--out", str(folder / "out")]


def _arrays(folder: Path) -> Iterator[str]:
    """Files of as many images and their labels as the clients hold together."""
    table = DATASETS.get("mnist")().prepared()
    for name, values in {"features": table.features, "labels": table.labels}.items():
        assert values is not None
        np.save(folder / f"{name}.npy", values[: 300 * CLIENTS])
        yield str(folder / f"{name}.npy")


def _measured(name: str, command: list[str], checkout: Path, shares: Shares) -> Callable[[], float]:
    def measure() -> float:
        before, sampled = _spent(), dict[int, float]()
        environment = os.environ | {"PYTHONPATH": str(checkout)}  # and cwd: Python looks there first
        process = subprocess.Popen(command, env=environment, cwd=checkout, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            shares[name] = max(shares.get(name, 0.0), sum(_shares(process.pid, sampled)) / 2**20)
            time.sleep(0.5)
        assert process.returncode == 0
        return max(_spent() - before, sum(sampled.values()))  # Ray waits for no process of its own

    return measure


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shares(process: int, sampled: dict[int, float]) -> Iterator[int]:
    """KiB of each process that ``process`` started, and its own; ``sampled`` gets their processor seconds."""
    try:
        family = [psutil.Process(process), *psutil.Process(process).children(recursive=True)]
    except psutil.Error:
        return
    for one in family:
        try:
            lines = Path(f"/proc/{one.pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
            sampled[one.pid] = sum(one.cpu_times()[:2])
        except (OSError, psutil.Error):
            continue
        facts: Mapping[str, str] = dict(line.split(":", 1) for line in lines if ":" in line)
        yield int(facts.get("Pss", "0").split()[0])
