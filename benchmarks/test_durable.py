"""What `limits.durable = "machine"` costs: each write on the disk before a message leaves.

The files lie in pytest's temporary folder: `--basetemp` names another disk.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.federation import predicting, training_steps_per_second
from benchmarks.ratios import alternate, report
from benchmarks.test_tls import asking

STEPS = 400
LIMITS: dict[str, Any] = {name: {"durable": name} for name in ("process", "machine")}


@pytest.mark.benchmark(group="durable")
def test_training_on_a_synced_disk(benchmark: Any, tmp_path: Path) -> None:
    def measure(name: str) -> float:
        return training_steps_per_second(tmp_path, STEPS, limits=LIMITS[name])

    candidates = {name: lambda name=name: measure(name) for name in LIMITS}
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "training steps a second", figures, "process", "steps/s")


@pytest.mark.benchmark(group="durable")
def test_one_row_on_a_synced_disk(benchmark: Any, tmp_path: Path) -> None:
    with ExitStack() as end:
        parties = {
            name: end.enter_context(predicting(tmp_path / name, 20_000, limits=limits))
            for name, limits in LIMITS.items()
        }
        candidates = {name: asking(party) for name, party in parties.items()}
        figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "p50 of one row's Predict", figures, "process", "µs")
