"""What a person waits for before a command says anything."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter
from typing import Any

import pytest

from benchmarks.ratios import alternate, report


@pytest.mark.benchmark(group="start-up")
def test_commands_that_compute_nothing(benchmark: Any) -> None:
    candidates = {
        "python -c pass": lambda: _seconds("-c", "pass"),
        "vflens --help": lambda: _seconds("-m", "vflens.cli.main", "--help"),
        "vflens datasets list": lambda: _seconds("-m", "vflens.cli.main", "datasets", "list"),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "start-up", figures, "python -c pass", "s")


def _seconds(*arguments: str) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - began
