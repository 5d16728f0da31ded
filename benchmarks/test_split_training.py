"""Training of a split network: 20 features, an embedding of 64, a top of 32 hidden units, batch 256, three
processes.

The reference is the whole network in one torch process. Ours runs with gate, transcript and recovery log on;
the alternatives have neither. Aggregated at the active party, the alternatives pass their coordinator by as
ours does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks.baselines import gloo, ray_actors, torch_rpc, torch_single
from benchmarks.federation import experiment, measured, training, training_steps_per_second
from benchmarks.ratios import alternate, report
from vflens.storage.metrics import Name

STEPS, WIDTH = 2000, 64
MODEL = {"architecture": "mlp", "width": WIDTH, "top": [32]}
STRAIGHT: dict[str, Any] = {"model": MODEL, "aggregator": "active"}
STALE = {**STRAIGHT, "staleness": 1}


@pytest.mark.benchmark(group="training")
def test_share_of_one_torch_process(benchmark: Any, tmp_path: Path) -> None:
    def ours(**settings: Any) -> Callable[[], float]:
        return lambda: training_steps_per_second(tmp_path, STEPS, **settings)

    def theirs(measure: Callable[..., float], **settings: Any) -> Callable[[], float]:
        return lambda: measure(STEPS // 2, embedding=WIDTH, **settings)

    candidates = {
        "one torch process": lambda: torch_single.steps_per_second(STEPS, embedding=WIDTH),
        "VFLens, coordinator": ours(model=MODEL),
        "VFLens, active party": ours(**STRAIGHT),
        "VFLens, active party, one step stale": ours(**STALE),
        "torch.distributed.rpc, coordinator": theirs(torch_rpc.steps_per_second),
        "torch.distributed.rpc, active party": theirs(torch_rpc.steps_per_second, direct=True),
        "gloo, coordinator": theirs(gloo.steps_per_second),
        "gloo, active party": theirs(gloo.steps_per_second, direct=True),
        "Ray actors, coordinator": theirs(ray_actors.steps_per_second),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "split training steps a second", figures, "one torch process", "steps/s")


@pytest.mark.benchmark(group="training")
def test_accuracy_one_step_stale(benchmark: Any, tmp_path: Path) -> None:
    """Five seeds, few steps: what staleness costs shows while the model still moves, and with large steps
    most.
    """

    def accuracy(rate: float, **settings: Any) -> list[float]:
        what = {**settings, "learning_rate": rate}
        return [measured(training(tmp_path, 200, seed=seed, **what), Name.ACCURACY) for seed in range(5)]

    candidates = {
        f"{kind}, learning rate {rate:g}": (rate, settings)
        for rate in (0.01, 0.001)
        for kind, settings in (("exact", STRAIGHT), ("one step stale", STALE))
    }
    figures = benchmark.pedantic(
        lambda: {name: accuracy(rate, **settings) for name, (rate, settings) in candidates.items()}, rounds=1
    )
    report(benchmark, "accuracy after 200 steps", figures, "exact, learning rate 0.01", "")
    assert min(median(values) for values in figures.values()) > 0.5


@pytest.mark.benchmark(group="training")
def test_an_epoch_with_passports(benchmark: Any, tmp_path: Path) -> None:
    """LeNet on halves of MNIST's images; the small CNN on digits where the folder of whole data sets is
    absent.
    """
    mnist = "VFLENS_DATA" in os.environ
    images: dict[str, Any] = {
        "data": {"name": "mnist" if mnist else "digits"},
        "split": {"kind": "image_halves"},
        "model": {"architecture": "lenet" if mnist else "cnn", "top": [84]},
    }
    passports = [{"name": "passport", "at": "passive"}, {"name": "passport", "at": "active"}]

    def epoch_seconds(defenses: list[dict[str, str]]) -> float:
        scenario = {"name": "run", "defenses": defenses}
        epochs = 1 if mnist else 5
        setup = experiment(tmp_path, rows=0, batch=256, epochs=epochs, scenarios=[scenario], **images)
        return measured(setup, Name.TRAIN_SECONDS) / epochs

    candidates = {
        "without passports": lambda: epoch_seconds([]),
        "with passports": lambda: epoch_seconds(passports),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "an epoch of training", figures, "without passports", "s")
