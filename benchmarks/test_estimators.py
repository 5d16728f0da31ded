"""The batched estimators against one convex program, or one torch loop, per sample: ratios of CPU time on one
core.

The baselines run on a few samples of each batch and are scaled up to it. Processor time is compared, not
wall time: other work on the machine then weighs less. Each ratio is that of medians of alternating
repetitions. Systems without a null space are left out: there the baselines would have nothing to solve.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pytest
from cvxpy.error import SolverError
from threadpoolctl import threadpool_limits

from benchmarks.baselines import estimators as one_by_one
from benchmarks.ratios import alternate
from vflens import attacks
from vflens.datasets._resolve import dataset
from vflens.experiments.figures.central import train
from vflens.models.settings import Training
from vflens.models.softmax_regression import log_softmax
from vflens.numerics.gradient_inversion import invert
from vflens.types import Array
from vflens.verification import programs

N = 1000
REPETITIONS = 5


@pytest.fixture(autouse=True)
def _one_core() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def compare(
    label: str, ours: Callable[[], object], rows: int, theirs: Callable[[], object], some: int
) -> float:
    """How often faster a row of ours is, after one call of each that does not count; ``theirs`` solves
    ``some`` rows.
    """
    ours(), theirs()
    taken = alternate({"ours": lambda: _seconds(ours), "theirs": lambda: _seconds(theirs)}, REPETITIONS)
    mine, other = median(taken["ours"]) / rows, median(taken["theirs"]) / some
    print(f"  {label:<44} {mine * 1e6:10.2f} µs {other * 1e3:9.2f} ms {other / mine:10,.0f} ×", flush=True)
    return other / mine


def _seconds(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


def solve_all(program: Callable[..., Array], A: Array, b: Array, **solver: Any) -> Array:
    """The program's answer to each row; NaN where its solver gives up. What it warns of is its own affair."""
    answers = np.full((len(b), A.shape[1]), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, right in enumerate(b):
            with suppress(SolverError, TypeError):  # TypeError: no value was left
                answers[row] = program(A, right, **solver)
    return answers


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


def report(benchmark: Any, title: str, measure: Callable[[], list[float]]) -> None:
    print(f"\n{title}\n  {'':<44} {'a row of ours':>13} {'one program':>12} {'ratio':>12}")
    ratios = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info.update({"ratios": ratios})
    print(f"  median {median(ratios):,.0f} ×, least {min(ratios):,.0f} ×")


WIDTHS = {"satellite": [6, 8, 10, 20, 30], "bank": [5, 10, 15], "pendigits": [10, 12, 15]}


def systems(kind: str) -> Iterator[tuple[str, Array, Array]]:
    if kind == "random":
        for k in (2, 4, 6, 10):
            for d in (5, 10, 20, 35):
                if d >= k:
                    yield f"k={k} d={d}", *random_system(k, d)
    else:
        yield from real_systems(kind, WIDTHS[kind])


@pytest.mark.benchmark(group="estimators")
@pytest.mark.parametrize("kind", ["random", *WIDTHS])
def test_rcc2(benchmark: Any, kind: str) -> None:
    title = f"RCC2, {N:,} rows against CVXPY's default solver (6 rows, scaled up): {kind}"
    report(benchmark, title, lambda: [_rcc2(*case, random=kind == "random") for case in systems(kind)])


def _rcc2(label: str, A: Array, b: Array, *, random: bool) -> float:
    exact = solve_all(programs.rcc2, A, b[:2])
    wrong = np.nanmax(np.abs(attacks.estimate("rcc2", A, b).values[:2] - exact), initial=0.0)
    assert wrong < (1e-8 if random else 1e-4), label  # at vertices CVXPY's error is the larger one

    def theirs() -> Array:
        return solve_all(programs.rcc2, A, b[:6], solver=None)

    return compare(label, lambda: attacks.estimate("rcc2", A, b), N, theirs, 6)


#: Which rows, of which systems: (k, d, how dominant the first feature is), or a data set.
RCC1: dict[str, tuple[str, list[Any]]] = {
    "certified": ("certified", [(4, 20, 1), (6, 20, 1), (6, 35, 1), (10, 35, 1)]),
    "one equation, uncertified": ("uncertified", [(2, d, 1.3 * d**0.5) for d in (5, 10, 20, 35)]),
    "one equation, bank": ("all", ["bank"]),
    "uncertified, d ≤ 10": ("uncertified", [(3, 6, 3), (4, 8, 3), (4, 10, 3), (6, 10, 3)]),
    "uncertified, d > 10": ("uncertified", [(4, 15, 3), (6, 20, 3), (6, 35, 3)]),
    "uncertified, satellite": ("uncertified", ["satellite"]),
    "uncertified, pendigits": ("uncertified", ["pendigits"]),
}


@pytest.mark.benchmark(group="estimators")
@pytest.mark.parametrize("kind", RCC1)
def test_rcc1(benchmark: Any, kind: str) -> None:
    which, grid = RCC1[kind]

    def cases() -> Iterator[tuple[str, Array, Array]]:
        for case in grid:
            if isinstance(case, str):
                yield from systems(case)
            else:
                yield "k={} d={}".format(*case), *random_system(*case)

    def measure() -> list[float]:
        ratios = [_rcc1(*case, which) for case in cases()]
        return [ratio for ratio in ratios if ratio is not None]

    report(benchmark, f"RCC1, {kind}, against CVXPY with Clarabel (3 rows, scaled up)", measure)


def _rcc1(label: str, A: Array, b: Array, which: str) -> float | None:
    """None where fewer than 50 rows are of the kind asked for: fixed costs would be measured."""
    certified = attacks.estimate("rcc1", A, b).extras["certified"]
    chosen = {"all": certified | True, "certified": certified, "uncertified": ~certified}[which]
    b = b[chosen][: N if A.shape[1] < 15 else 300]
    if len(b) < 50:
        return None

    def theirs() -> Array:
        return solve_all(programs.rcc1, A, b[:3], solver="CLARABEL")

    wrong = np.abs(attacks.estimate("rcc1", A, b).values[:3] - theirs())
    assert np.nanmax(wrong, initial=0.0) < 1e-3  # the program's default tolerance
    label = f"{label}, {len(b)} rows ({certified.mean():.0%} certified)"
    return compare(label, lambda: attacks.estimate("rcc1", A, b), len(b), theirs, 3)


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
    return compare(f"k={k} d={d}", ours, N, theirs, 3)
