"""The batched estimators against one convex program, or one torch loop, per sample: ratios of CPU time on one core.

The baselines run on a few samples of each batch and are scaled up to it. Processor time is compared, not
wall time: other work on the machine then weighs on neither side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import attacks
from benchmarks.baselines import estimators as one_by_one
from experiments.central import train
from vfl.datasets._resolve import dataset
from vfl.federation import Training
from vfl.logistic import log_softmax
from vfl.numerics.gradient_inversion import invert
from vfl.types import Array

N = 1000
TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


@pytest.fixture(autouse=True)
def _one_core() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def seconds(work: Callable[[], object], repetitions: int) -> float:
    """Median processor time of one call, after one that does not count."""
    work()
    taken = []
    for _ in range(repetitions):
        began = process_time()
        work()
        taken.append(process_time() - began)
    return median(taken)


def random_system(k: int, d: int, dominant: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(k * 100 + d)
    A = np.diff(rng.normal(size=(k, d)), axis=0)
    if dominant > 1:
        A[:, 0] = dominant * np.abs(A[:, 1:]).sum(axis=1) / np.sqrt(d) * rng.choice([-1, 1], k - 1)
    return A, rng.random((N, d)) @ A.T


def real_systems(name: str, widths: list[int]) -> Iterator[tuple[str, Array, Array]]:
    """Systems of a model trained on ``name``: three windows of each width, N rows each."""
    if "VFLENS_DATA" not in os.environ:
        pytest.skip("VFLENS_DATA is not set")
    table = dataset(name, {}).load()
    assert table.labels is not None
    low, high = table.features.min(axis=0), table.features.max(axis=0)
    x, k = (table.features - low) / (high - low), len(table.class_names)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    settings = Training(epochs=60, batch_size=1000, learning_rate=0.1, l2=1e-4)
    rows = order[N:9000]
    model = train(x[rows], table.labels[rows], k, settings, np.random.default_rng)
    for d in widths:
        for start in range(0, x.shape[1], -(-x.shape[1] // 3)):
            columns = (start + np.arange(d)) % x.shape[1]
            A = np.diff(model.weight[:, columns], axis=0)
            yield f"{name} d={d} from {start}", A, x[np.ix_(order[:N], columns)] @ A.T


def compare(label: str, ours: float, rows: int, theirs: float) -> float:
    ratio = theirs * rows / ours
    print(f"  {label:<44} {ours / rows * 1e6:10.2f} µs {theirs * 1e3:9.2f} ms {ratio:10,.0f} ×")
    return ratio


def report(benchmark: Any, title: str, measure: Callable[[], list[float]]) -> None:
    print(f"\n{title}\n  {'':<44} {'a row of ours':>13} {'one program':>12} {'ratio':>12}")
    ratios = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info.update({"ratios": ratios})
    print(f"  median {median(ratios):,.0f} ×, least {min(ratios):,.0f} ×")


WIDTHS = {"satellite": [5, 6, 8, 10, 20, 30], "bank": [5, 10, 15], "pendigits": [5, 10, 12]}


def systems(kind: str) -> Iterator[tuple[str, Array, Array]]:
    if kind == "random":
        for k in (2, 4, 6, 10):
            for d in (5, 10, 20, 35):
                yield f"k={k} d={d}", *random_system(k, d)
    else:
        yield from real_systems(kind, WIDTHS[kind])


@pytest.mark.benchmark(group="estimators")
@pytest.mark.parametrize("kind", ["random", *WIDTHS])
def test_rcc2(benchmark: Any, kind: str) -> None:
    def measure() -> list[float]:
        return [_rcc2(*case, agree=1e-8 if kind == "random" else 1e-4) for case in systems(kind)]

    report(
        benchmark, f"RCC2, {N:,} rows against CVXPY's default solver (12 rows, scaled up): {kind}", measure
    )


def _rcc2(label: str, A: Array, b: Array, agree: float) -> float:
    values = attacks.estimate("rcc2", A, b).values
    if np.linalg.matrix_rank(A) < A.shape[1]:
        solver = TIGHT if agree < 1e-6 else {"solver": "CLARABEL"}
        exact = np.array([one_by_one.rcc2(A, row, **solver) for row in b[:2]])
        assert np.abs(values[:2] - exact).max() < agree, label
    ours = seconds(lambda: attacks.estimate("rcc2", A, b), 9)
    theirs = seconds(lambda: [one_by_one.rcc2(A, row) for row in b[:12]], 1) / 12
    return compare(label, ours, N, theirs)


RCC1: dict[str, tuple[list[tuple[int, int]], float]] = {
    "certified": ([(4, 20), (6, 20), (6, 35), (10, 35)], 1.0),
    "one equation": ([(2, 5), (2, 10), (2, 20), (2, 35)], 7.0),
    "uncertified, d ≤ 10": ([(3, 6), (4, 8), (4, 10), (6, 10)], 3.0),
    "uncertified, d > 10": ([(4, 15), (6, 20), (6, 35)], 3.0),
}


@pytest.mark.benchmark(group="estimators")
@pytest.mark.parametrize("kind", RCC1)
def test_rcc1(benchmark: Any, kind: str) -> None:
    grid, dominant = RCC1[kind]
    report(
        benchmark,
        f"RCC1, {kind}, against CVXPY with Clarabel (some rows, scaled up)",
        lambda: [_rcc1(kind, *random_system(k, d, dominant)) for k, d in grid],
    )


def _rcc1(kind: str, A: Array, b: Array) -> float:
    k, d = len(A) + 1, A.shape[1]
    certified = attacks.estimate("rcc1", A, b).extras["certified"]
    if kind != "one equation":
        b = b[certified == (kind == "certified")]
    if "d > 10" in kind:
        b = b[:300]
    values = attacks.estimate("rcc1", A, b).values
    assert np.abs(values[0] - one_by_one.rcc1(A, b[0])).max() < 1e-4  # the program's default tolerance
    ours, some = seconds(lambda: attacks.estimate("rcc1", A, b), 3), 3 if d > 15 else 6
    theirs = seconds(lambda: [one_by_one.rcc1(A, row) for row in b[:some]], 1) / some
    return compare(f"k={k} d={d}, {len(b)} rows ({certified.mean():.0%} certified)", ours, len(b), theirs)


@pytest.mark.benchmark(group="estimators")
def test_gia(benchmark: Any) -> None:
    report(
        benchmark,
        f"GIA, {N:,} rows, 1,000 steps of Adam, against one torch loop a sample (3 rows, scaled up)",
        lambda: [_gia(k, d) for k, d in ((2, 5), (2, 10), (6, 10), (6, 30))],
    )


def _gia(k: int, d: int) -> float:
    rng = np.random.default_rng(d)
    weight = rng.normal(size=(k, d))
    log_c = log_softmax(rng.random((N, d)) @ weight.T)
    A, b = np.diff(weight, axis=0), np.diff(log_c, axis=1)

    def ours() -> Array:
        return invert(A, b, log_c, np.zeros(d), steps=1000, learning_rate=0.05).objective

    def theirs() -> Array:
        return np.array([one_by_one.gia(weight, row, 1000, 0.05)[1] for row in log_c[:3]])

    assert (ours()[:3] < theirs() + 1e-4).all()  # the same objective is reached
    return compare(f"k={k} d={d}", seconds(ours, 3), N, seconds(theirs, 1) / 3)
