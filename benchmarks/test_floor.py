"""VFLens against the floor: the same numerics and messages in bare processes, in turn and placed alike.

The aim is at least .7 of the floor in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pytest

from benchmarks.baselines import floor
from benchmarks.federation import predicting, training_steps_per_second
from benchmarks.ratios import alternate, report
from vflens.types import Array

STEPS, CALLS, REQUESTS, BATCH = 4000, 300, 40, 1024


@pytest.mark.benchmark(group="floor")
def test_training_steps(benchmark: Any, tmp_path: Path) -> None:
    candidates = {
        "floor": lambda: floor.steps_per_second(tmp_path, STEPS),
        "VFLens": lambda: training_steps_per_second(tmp_path / "run", STEPS),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "training steps a second", figures, "floor", "steps/s")


@pytest.mark.benchmark(group="floor")
def test_predictions(benchmark: Any, tmp_path: Path) -> None:
    with predicting(tmp_path / "run", 600_000) as party, floor.predicting(tmp_path) as ask:
        asks: dict[str, Callable[[Array], Any]] = {"floor": ask, "VFLens": party.predictions.ask}
        fresh = {name: partial(_next, party.run.federation.predict, count()) for name in asks}
        single = {name: partial(_p50, asks[name], fresh[name]) for name in asks}
        many = {
            f"{name}, {flight} in flight": partial(_rows_per_second, asks[name], fresh[name], flight)
            for flight in (1, 2)
            for name in asks
        }
        one = benchmark.pedantic(lambda: alternate(single), rounds=1)
        figures = alternate(many)
    report(benchmark, "one row, p50", one, "floor", "µs")
    report(benchmark, f"predictions a second at batch {BATCH}", figures, "floor, 1 in flight", "rows/s")


def _next(rows: Array, blocks: Iterator[int], size: int) -> Array:
    """``size`` rows that were not asked for before."""
    start = next(blocks) * BATCH
    return rows[start : start + size]


def _p50(ask: Callable[[Array], Any], next_rows: Callable[[int], Array]) -> float:
    times, rows = [], next_rows(CALLS)
    for i in range(CALLS):
        began = perf_counter()
        ask(rows[i : i + 1])
        times.append(perf_counter() - began)
    return median(times) * 1e6


def _rows_per_second(ask: Callable[[Array], Any], next_rows: Callable[[int], Array], in_flight: int) -> float:
    requests = [next_rows(BATCH) for _ in range(REQUESTS)]
    with ThreadPoolExecutor(in_flight) as callers:
        began = perf_counter()
        list(callers.map(ask, requests))
        return REQUESTS * BATCH / (perf_counter() - began)
