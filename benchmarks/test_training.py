"""Training of softmax regression through the coordinator: 20 features, batch 256, three processes.

The reference is the same loop in one torch process. Ours runs with gate, transcript and recovery log on,
and once with the two logs off; the alternatives have neither. Beside them what gRPC alone takes: the
same four messages a step between processes that compute and check nothing.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baselines import gloo, ray_actors, torch_rpc, torch_single
from benchmarks.federation import bare_steps_per_second, training_steps_per_second
from benchmarks.ratios import alternate, report

STEPS = 4000


@pytest.mark.benchmark(group="training")
def test_share_of_one_torch_process(benchmark: Any, tmp_path: Path) -> None:
    candidates = {
        "one torch process": lambda: torch_single.steps_per_second(STEPS),
        "VFLens": lambda: training_steps_per_second(tmp_path, STEPS),
        "VFLens, logs off": lambda: training_steps_per_second(tmp_path, STEPS, entry="benchmarks.unlogged"),
        "gRPC with nothing to do": lambda: bare_steps_per_second(STEPS // 2),
        "torch.distributed.rpc": lambda: torch_rpc.steps_per_second(STEPS // 4),
        "gloo": lambda: gloo.steps_per_second(STEPS // 4),
        "Ray actors": lambda: ray_actors.steps_per_second(STEPS // 4),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "training steps a second", figures, "one torch process", "steps/s")


@pytest.mark.benchmark(group="training")
def test_evidence_in_the_logs(benchmark: Any, tmp_path: Path) -> None:
    """What the hash chain and the digests of releases cost, in steps a second and in processor time."""
    processor: dict[str, list[float]] = {}

    def measure(name: str, entry: str) -> Callable[[], float]:
        def once() -> float:
            before = _processor_seconds()
            rate = training_steps_per_second(tmp_path, STEPS, entry=entry)
            processor.setdefault(name, []).append((_processor_seconds() - before) / STEPS * 1e6)
            return rate

        return once

    names = {"no chain": "benchmarks.unchained", "chain and digests": "vflens.cli.main"}
    candidates = {name: measure(name, entry) for name, entry in names.items()}
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "training steps a second", figures, "no chain", "steps/s")
    report(benchmark, "processor time a step, start and end included", processor, "no chain", "µs")


def _processor_seconds() -> float:
    """User and system time of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
