"""The small choices that a comment in the code defends by its cost: each beside what it replaces.

docs/performance.md has the figures. Everything runs in this process, but the imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from benchmarks.ratios import alternate, report
from vflens.failpoints import fail_point
from vflens.models.softmax_regression import loss_gradient
from vflens.numerics.optimizer import Adam
from vflens.numerics.shares.step import product as modular
from vflens.storage.index import index_line
from vflens.storage.journal import Journal
from vflens.types import Exchange, Phase, Point, Released

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(256, 2))
LABELS = np.eye(2)[RNG.integers(0, 2, 256)]
WHOLE, COLUMN = (RNG.integers(0, 2**64, shape, np.uint64) for shape in ((256, 300), (300, 1)))
TENSOR = RNG.normal(size=(256, 64)).astype(np.float32)


def by_rows() -> float:
    """What loss_gradient computes, with the classes last."""
    z = LOGITS - LOGITS.max(axis=1, keepdims=True)
    gradient = np.exp(z)
    total, mass = gradient.sum(axis=1, keepdims=True), LABELS.sum(axis=1, keepdims=True)
    loss = float((np.log(total) * mass).sum() - (LABELS * z).sum()) / len(z)
    gradient *= mass / total
    gradient -= LABELS
    gradient /= len(z)
    return loss


def product(smallest: float) -> Callable[[], object]:
    """A product with weights of which half have this size; some processors take subnormal ones slowly."""
    weights = RNG.normal(size=(64, 64)).astype(np.float32)
    weights[:, ::2] = smallest
    x = RNG.normal(size=(256, 64)).astype(np.float32)
    return lambda: x @ weights


def adam(size: float) -> Callable[[], object]:
    """A step without gradient whose moments have this size."""
    optimizer, theta, gradient = Adam(10_000, 0.01), np.zeros(10_000), np.zeros(10_000)

    def step() -> None:
        optimizer._moments[:] = size  # each step lets them fade
        optimizer.update(theta, gradient)

    return step


def entry() -> Callable[[], object]:
    released = Released(
        "passive",
        Exchange("run", Phase.TRAIN, 0, 0),
        Point.EMBEDDING,
        np.arange(256, dtype=np.int32),
        tensors={"embedding": LOGITS},
    )
    return lambda: index_line(released, 0)


def dumped() -> object:
    arrays = [
        {"name": name, "dtype": "<f8", "shape": [256, 2], "offset": 0, "nbytes": 4096}
        for name in ("", "embedding")
    ]
    index = {
        "sender": "passive",
        "run": "run",
        "phase": "train",
        "round": 0,
        "step": 0,
        "point": "embedding",
    }
    return json.dumps({**index, "rows": arrays[0], "tensors": arrays[1:], "nbytes": 5120, "withheld": False})


def appended(log: Journal) -> Callable[[], object]:
    """A payload of 5 KiB goes into ``log``."""
    numbers = count()
    rows = np.arange(256, dtype=np.int32)

    def append() -> None:
        exchange = Exchange("run", Phase.TRAIN, 0, next(numbers))
        log.append(Released("passive", exchange, Point.EMBEDDING, rows, tensors={"embedding": LOGITS}))

    return append


def its_fail_points() -> None:
    """What an append calls while no fault is armed."""
    fail_point("transcript", "begun")
    fail_point("transcript", "payload")
    fail_point("transcript", "written")


#: What is compared: the way taken, then the one that it replaces.
CHOICES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "cross-entropy, 256 × 2: classes first, last": (lambda: loss_gradient(LOGITS, LABELS), by_rows),
    "column sums, 256 × 2: product, sum(axis=0)": (
        lambda: np.matmul(np.ones(256), LOGITS),
        lambda: LOGITS.sum(axis=0),
    ),
    "NaN in 256 × 64 float32: dot product, isnan": (
        lambda: np.vdot(TENSOR, TENSOR),
        lambda: np.isnan(TENSOR).any(),
    ),
    "256 × 300 by 300 × 1 modulo 2⁶⁴: sum over the last index, @": (
        lambda: modular(WHOLE, COLUMN),
        lambda: WHOLE @ COLUMN,
    ),
    "300 × 256, transposed, by 256 × 1: the same": (
        lambda: modular(WHOLE.T, COLUMN[:256]),
        lambda: WHOLE.T @ COLUMN[:256],
    ),
    "product with weights: zero, subnormal": (product(0.0), product(1e-40)),
    "step of Adam with moments: zero, subnormal": (adam(0.0), adam(1e-310)),
    "index line: by hand, json.dumps": (entry(), dumped),
}


@pytest.mark.benchmark(group="choices")
@pytest.mark.parametrize("choice", CHOICES)
def test_small_choice(benchmark: Any, choice: str) -> None:
    taken, replaced = CHOICES[choice]
    candidates = {"taken": lambda: _microseconds(taken), "replaced": lambda: _microseconds(replaced)}
    figures = benchmark.pedantic(lambda: alternate(candidates, 15), rounds=1)
    report(benchmark, choice, figures, "taken", "µs")


@pytest.mark.benchmark(group="choices")
def test_the_fail_points_of_an_append(benchmark: Any, tmp_path: Path) -> None:
    """Beside the append that they are in."""
    with closing(Journal(tmp_path)) as log:
        append = appended(log)
        candidates = {
            "append": lambda: _microseconds(append),
            "its fail points": lambda: _microseconds(its_fail_points),
        }
        figures = benchmark.pedantic(lambda: alternate(candidates, 15), rounds=1)
    report(benchmark, "5 KiB appended to a log", figures, "append", "µs")


@pytest.mark.benchmark(group="choices")
def test_a_log_that_is_written_over(benchmark: Any, tmp_path: Path) -> None:
    """256 blocks of 64 KiB: over what the file holds, or into a file that grows."""

    def write(mode: str) -> float:
        with (tmp_path / "log").open(mode, buffering=0) as file:
            return _microseconds(lambda: file.write(b"x" * 65536), 256)

    write("wb")
    candidates = {"written over": lambda: write("r+b"), "grows": lambda: write("wb")}
    figures = benchmark.pedantic(lambda: alternate(candidates, 15), rounds=1)
    report(benchmark, "64 KiB of a log", figures, "written over", "µs")


@pytest.mark.benchmark(group="choices")
@pytest.mark.parametrize("module", ["scipy.stats", "pandas"])
def test_an_import_that_is_avoided(benchmark: Any, module: str) -> None:
    def seconds(modules: str) -> float:
        began = perf_counter()
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        return perf_counter() - began

    candidates = {"numpy": lambda: seconds("numpy"), module: lambda: seconds(f"numpy, {module}")}
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, f"start of Python with {module}", figures, "numpy", "s")


def _microseconds(work: Callable[[], object], times: int = 200) -> float:
    began = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - began) / times * 1e6
