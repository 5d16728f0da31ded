"""Training of softmax regression with several passive parties: a process each, beside all of them in one
process.

40 columns, 28 of them passive, batch 256. The reference is the protocol in one process, gate and logs on:
what the processes gain by working side by side, and lose by waking each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.federation import experiment
from benchmarks.ratios import alternate, report
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.run import run
from vflens.storage.metrics import Name

PER_EPOCH, BATCH = 40, 256


@pytest.mark.benchmark(group="parties")
@pytest.mark.parametrize(("parties", "epochs"), [(1, 50), (3, 25), (7, 12), (15, 6)])
def test_share_of_all_in_one_process(benchmark: Any, tmp_path: Path, parties: int, epochs: int) -> None:
    candidates = {
        "one process": lambda: _steps_per_second(tmp_path, parties, epochs, in_process=True),
        "a process each": lambda: _steps_per_second(tmp_path, parties, epochs, in_process=False),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    title = f"training steps a second, passive parties: {parties}"
    report(benchmark, title, figures, "one process", "steps/s")


def _steps_per_second(out: Path, parties: int, epochs: int, *, in_process: bool) -> float:
    names = [f"passive-{i:02}" for i in range(parties)]
    setup = experiment(
        out,
        rows=int(PER_EPOCH * BATCH / 0.8),
        batch=BATCH,
        epochs=epochs,
        features=40,
        split={"kind": "fraction", "fraction": 0.7},
        parties={"passive": names},
    )
    value = read_runs(run(setup, in_process=in_process).scenarios)[0].value(Name.STEPS_PER_SECOND)
    assert value is not None
    return value
