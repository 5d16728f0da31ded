"""RVG's Fig. 4 on Satellite, whole, against one program or torch loop per sample: CPU time on one core.

The per-sample programs run on a few samples at three sizes; the rest is interpolated.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.baselines import estimators as one_by_one
from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures._data import dealt, trained, windows
from vflens.experiments.figures._windows import GIA_ROWS, PREDICTIONS, window_system
from vflens.experiments.figures.rvg import all_estimators
from vflens.experiments.sweeps.pool import Pool
from vflens.verification import programs

WIDTH, SIZES, SAMPLES = 36, (8, 18, 36), 3
STEPS, RATE = 1000, 0.05


@pytest.mark.benchmark(group="figures")
@pytest.mark.timeout(3600)
@pytest.mark.skipif("VFLENS_DATA" not in os.environ, reason="VFLENS_DATA is not set")
def test_figure_four_of_satellite(benchmark: Any, tmp_path: Path) -> None:
    with threadpool_limits(1):
        trained("satellite", 0, False)  # both sides start from it
        ours = benchmark.pedantic(lambda: _ours(tmp_path), rounds=1)
        measured = {size: _per_sample(size) for size in SIZES}
    rows = {name: GIA_ROWS if name == "gia" else PREDICTIONS for name in measured[SIZES[0]]}
    theirs = {name: WIDTH * n * _summed(measured, name) for name, n in rows.items()}
    hours = {name: t / 3600 for name, t in theirs.items()}
    print(
        f"\nFig. 4, Satellite, {WIDTH} sizes × {WIDTH} windows × {PREDICTIONS:,} predictions × ten estimators"
    )
    print(f"  here, whole: {ours:,.0f} s of one core")
    for size, found in measured.items():
        print(f"  per sample at d = {size}: " + ", ".join(f"{n} {1e3 * t:,.1f} ms" for n, t in found.items()))
    print("  one by one, extrapolated: " + ", ".join(f"{n} {h:,.1f} h" for n, h in hours.items()))
    print(f"  ratio {sum(theirs.values()) / ours:,.0f} ×")
    benchmark.extra_info.update({"seconds": ours, "one by one, hours": hours})
    assert ours < 15 * 60
    assert sum(theirs.values()) > 100 * ours


def _ours(folder: Path) -> float:
    began = process_time()
    drawing = all_estimators(FigureOptions(Pool(folder)), ["satellite"])
    assert len(drawing.rows) == WIDTH * WIDTH * 10
    return process_time() - began


def _per_sample(size: int) -> dict[str, float]:
    """Median seconds of a sample, by estimator; the others are closed forms."""
    data, model = dealt("satellite", 0), trained("satellite", 0, False)
    x, window = data.predictions(SAMPLES, 0), windows(WIDTH, size, quick=False)[3]
    system = window_system(model, x, window)
    log_c, weight = model.log_scores(x), model.weight[:, window]
    work_of: dict[str, Callable[[int], object]] = {
        "rcc1": lambda i: programs.rcc1(system.A, system.b[i]),
        "rcc2": lambda i: programs.rcc2(system.A, system.b[i]),
        "cls": lambda i: one_by_one.cls(system.A, system.b[i]),
        "gia": lambda i: one_by_one.gia(weight, log_c[i], STEPS, RATE),
    }
    return {name: median(_seconds(work, i) for i in range(SAMPLES)) for name, work in work_of.items()}


def _seconds(work: Callable[[int], object], i: int) -> float:
    began = process_time()
    work(i)
    return process_time() - began


def _summed(measured: dict[int, dict[str, float]], name: str) -> float:
    """Over all sizes, linear between those measured."""
    return float(np.interp(np.arange(1, WIDTH + 1), SIZES, [measured[s][name] for s in SIZES]).sum())
