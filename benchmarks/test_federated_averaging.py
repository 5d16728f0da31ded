"""Federated averaging with ten clients, beside the same arithmetic in one plain torch loop.

LeNet on MNIST; the small CNN on digits where the folder of whole data sets is absent. The reference draws
batches, trains with Adam and averages; ours also scales, checks, gates and logs.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from benchmarks.baselines.torch_fedavg import Federation, seconds_per_round
from benchmarks.peaks import processor_seconds, shares
from benchmarks.ratios import alternate, report
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.storage.metrics import Name
from vflens.types import Document

CLIENTS, ROUNDS, BATCH, RATE, L2 = 10, 2, 64, 0.001, 1e-4
MNIST = "VFLENS_DATA" in os.environ
IMAGES: dict[str, Any] = {
    "data": {"name": "mnist" if MNIST else "digits"},
    "model": {"architecture": "lenet" if MNIST else "cnn", "top": [84]},
}


def experiment(out: Path, **more: Any) -> HorizontalExperiment:
    """Ten clients with equal parts of the rows, in local processes."""
    settings = {
        "name": "benchmark",
        "out": out,
        "parties": {"clients": CLIENTS},
        "horizontal": {"rounds": ROUNDS, "weights": "equal"},
        "training": {"batch_size": BATCH, "learning_rate": RATE, "l2": L2},
    }
    return HorizontalExperiment.model_validate({**settings, **more})


@pytest.mark.benchmark(group="federated averaging")
def test_a_round_of_ten_clients(benchmark: Any, tmp_path: Path) -> None:
    side, rows = (28, 6000) if MNIST else (8, 144)
    federation = Federation(side, CLIENTS, rows, ROUNDS, BATCH, RATE, L2)

    def ours(*, in_process: bool) -> float:
        done = run(experiment(tmp_path, **IMAGES), in_process=in_process)
        seconds = read_runs(done.scenarios)[0].value(Name.TRAIN_SECONDS)
        assert seconds is not None
        return ROUNDS / seconds

    candidates = {
        "one torch loop": lambda: 1 / seconds_per_round(federation),
        "VFLens, one process": lambda: ours(in_process=True),
        "VFLens, a process each": lambda: ours(in_process=False),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates, 3), rounds=1)
    report(benchmark, "rounds of ten clients a second", figures, "one torch loop", "rounds/s")


@pytest.mark.benchmark(group="federated averaging")
@pytest.mark.parametrize("clients", [10, 50, 100])
@pytest.mark.parametrize("model", ["softmax regression", "network"])
def test_start_and_memory(benchmark: Any, tmp_path: Path, model: str, clients: int) -> None:
    """From the start of the parties until the server has prepared all clients, in seconds and processor time;
    the process that forks them loads before that, while tables are dealt.
    """
    settings = IMAGES if model == "network" else {"data": IMAGES["data"]}
    found: dict[str, float] = {}

    def tell(_scenario: str, event: Document) -> None:
        match event.get("party", "run"), event["event"]:
            case "run", "started":
                found["began"] = perf_counter()
            case "server", "prepared":
                found.update(seconds=perf_counter() - found["began"], processor=processor_seconds())
                found.update({f"{party} MiB": mib for party, mib in shares().items()})

    setup = experiment(tmp_path, parties={"clients": clients}, horizontal={"rounds": 1}, **settings)
    benchmark.pedantic(lambda: run(setup, tell=tell), rounds=1)
    held = [mib for party, mib in found.items() if party.startswith("client")]
    print(
        f"\n{clients} clients, {model}: prepared after {found['seconds']:.1f} s and "
        f"{found['processor']:.1f} s of processor time; a client then holds {min(held):.0f} to "
        f"{max(held):.0f} MiB, the server {found['server MiB']:.0f} MiB"
    )
    benchmark.extra_info.update(found)
