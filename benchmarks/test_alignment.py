"""What an id costs in the alignment of two parties, by private set intersection and by keyed digests.

Seconds are of the processor: one core's work for both parties, under any load. ``python -m
benchmarks.test_alignment 1000000`` aligns so many ids once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import pytest

from benchmarks.ratios import alternate, report
from vflens.coordinator.vertical.aligning import collect
from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.experiments.run.in_process import LocalFederation
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.protocol.vertical.alignment import align
from vflens.randomness import stream
from vflens.types import AlignMode

pytestmark = pytest.mark.timeout(900)


class Cost(NamedTuple):
    """Seconds of one core, and of the clock, until rows are aligned."""

    core: float
    clock: float


def measured(home: Path, ids: int, mode: AlignMode) -> Cost:
    """Two parties with ``ids`` each, in one process, outside lab mode."""
    settings = {
        "name": "bench",
        "out": home,
        "lab": False,
        "data": {"name": "synthetic", "rows": ids, "features": 2, "classes": 2, "informative": 2},
        "split": {"kind": "fraction", "fraction": 0.5},
        "scenarios": [{"name": "run"}],
        "network": {"transport": "tcp"},
        "align": {"mode": mode},
    }
    experiment = Experiment.model_validate(settings)
    configs = write_parties(experiment, experiment.scenarios[0], deal_tables(experiment), home)
    local = LocalFederation(configs, lambda stage, done, total: None)
    leader = local.leader
    core, clock = process_time(), perf_counter()
    lists = collect(leader.links, leader.config.run, 4 * ids, lambda stage, done, total: None)
    found = align(lists.compared, 0.2, stream(b"split", "split"), mode)
    cost = Cost(process_time() - core, perf_counter() - clock)
    assert len(found.train) + len(found.predict) == ids
    for member in local.members():
        member.close()
    return cost


@pytest.mark.benchmark(group="alignment")
def test_an_id_of_two_parties(benchmark: Any) -> None:
    count = 10_000

    def microseconds(mode: AlignMode) -> float:
        with TemporaryDirectory() as home:
            return measured(Path(home), count, mode).core / count * 1e6

    candidates = {"hmac": lambda: microseconds("hmac"), "psi": lambda: microseconds("psi")}
    figures = benchmark.pedantic(lambda: alternate(candidates, 3), rounds=1)
    report(benchmark, f"{count:,} ids of two parties", figures, "hmac", "µs an id")


if __name__ == "__main__":
    for _mode in ("hmac", "psi"):
        with TemporaryDirectory() as _home:
            found = measured(Path(_home), int(sys.argv[1]), _mode)
        print(f"{_mode}: {found.core:.1f} s of a core, {found.clock:.1f} s by the clock")
