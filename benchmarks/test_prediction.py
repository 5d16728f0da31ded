"""Predictions through coordinator and both parties, against a bare unary echo.

Throughput is measured with one request in flight and with two: a party that has many rows to predict need not
wait for the scores of one batch before it asks for the next.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pytest

from benchmarks.federation import echo, predicting
from benchmarks.ratios import alternate, report

CALLS, BATCHES, BATCH = 300, 40, 1024


@pytest.mark.benchmark(group="prediction")
def test_one_row_against_a_unary_echo(benchmark: Any, tmp_path: Path) -> None:
    with predicting(tmp_path, 20_000) as party, echo() as call:
        rows, next_row = party.run.federation.predict, count()

        def ask() -> None:
            i = next(next_row)
            party.predictions.ask(rows[i : i + 1])

        candidates = {
            "unary echo": lambda: _p50(lambda: call(b"x" * 100)),
            "Predict, one row": lambda: _p50(ask),
        }
        figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "p50 of a call", figures, "unary echo", "µs")


@pytest.mark.benchmark(group="prediction")
def test_predictions_a_second(benchmark: Any, tmp_path: Path) -> None:
    with predicting(tmp_path, 600_000) as party, echo() as call:
        rows, start = party.run.federation.predict, count(step=BATCH)
        request = bytes(BATCH * (4 + 2 * 8))  # what a Predict carries: a position and two float64 a row

        def ask() -> None:
            i = next(start)
            party.predictions.ask(rows[i : i + BATCH])

        candidates = {
            "unary echo of as many bytes": lambda: _rows_per_second(lambda: call(request)),
            "Predict": lambda: _rows_per_second(ask),
            "Predict, two in flight": lambda: _rows_per_second(ask, in_flight=2),
        }
        figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(
        benchmark, f"predictions a second at batch {BATCH}", figures, "unary echo of as many bytes", "rows/s"
    )


def _rows_per_second(call: Any, in_flight: int = 1) -> float:
    with ThreadPoolExecutor(in_flight) as callers:
        began = perf_counter()
        for reply in [callers.submit(call) for _ in range(BATCHES)]:
            reply.result()
        return BATCHES * BATCH / (perf_counter() - began)


def _p50(call: Any) -> float:
    times = []
    for _ in range(CALLS):
        began = perf_counter()
        call()
        times.append(perf_counter() - began)
    return median(times) * 1e6
