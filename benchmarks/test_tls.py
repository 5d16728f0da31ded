"""What mutual TLS costs: the same federation at loopback ports, with certificates and without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.federation import predicting, training_steps_per_second
from benchmarks.ratios import alternate, report
from vflens.clients.vertical.active import ActiveParty
from vflens.experiments.run import dealer

STEPS, CALLS = 2000, 300
PORTS = {"transport": "tcp"}


@contextmanager
def _without_certificates() -> Iterator[None]:
    with patch.object(dealer, "_needs_certificates", lambda experiment: False):
        yield


@pytest.mark.benchmark(group="tls")
def test_training_over_tls(benchmark: Any, tmp_path: Path) -> None:
    def plain() -> float:
        with _without_certificates():
            return training_steps_per_second(tmp_path, STEPS, network=PORTS)

    candidates = {
        "no TLS": plain,
        "mutual TLS": lambda: training_steps_per_second(tmp_path, STEPS, network=PORTS),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "training steps a second", figures, "no TLS", "steps/s")


@pytest.mark.benchmark(group="tls")
def test_one_row_over_tls(benchmark: Any, tmp_path: Path) -> None:
    with ExitStack() as end:
        with _without_certificates():
            plain = end.enter_context(predicting(tmp_path / "plain", 20_000, network=PORTS))
        secure = end.enter_context(predicting(tmp_path / "secure", 20_000, network=PORTS))
        candidates = {"no TLS": asking(plain), "mutual TLS": asking(secure)}
        figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "p50 of one row's Predict", figures, "no TLS", "µs")


def asking(party: ActiveParty) -> Any:
    """The median time of a row's prediction; each row is asked for once."""
    rows, following = party.run.federation.predict, count()

    def measure() -> float:
        times = []
        for _ in range(CALLS):
            i = next(following)
            began = perf_counter()
            party.predictions.ask(rows[i : i + 1])
            times.append(perf_counter() - began)
        return median(times) * 1e6

    return measure
