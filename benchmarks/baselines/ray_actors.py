"""Three parties over Ray: the passive and the active party are actors, the caller is the coordinator.

Blocks go through the coordinator, as in the federation, not from actor to actor. A call returns when
its method does, so the active party's optimiser step opens its next call.
"""

from __future__ import annotations

import logging
import os
import sys
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.baselines.parts import Active, Passive, Size, batches, rate, total

Block = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.int64]


class _PassiveActor(Passive):
    def call(self, rows: Rows, grad: Block | None) -> Block:
        answer: Block = self.step(torch.tensor(rows), None if grad is None else torch.tensor(grad)).numpy()
        return answer


class _ActiveActor(Active):
    def call(self, rows: Rows, logits: Block) -> Block:
        answer: Block = self.step(torch.tensor(rows), torch.tensor(logits)).numpy()
        return answer


def _measure(ray: Any, size: Size) -> float:
    passive = ray.remote(num_cpus=1)(_PassiveActor).remote(size)
    active = ray.remote(num_cpus=1)(_ActiveActor).remote(size)
    rows: Rows = batches(total(size.steps), size.batch).numpy()
    grad: Block | None = None

    def step(t: int) -> None:
        nonlocal grad
        logits = ray.get(passive.call.remote(rows[t], grad))
        grad = ray.get(active.call.remote(rows[t], logits))

    return rate(size.steps, step)


def steps_per_second(
    steps: int, *, batch: int = 256, features: int = 20, classes: int = 2, embedding: int = 0
) -> float:
    """Federated steps per second; starts a Ray of its own on this machine and stops it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    with TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=100 * 2**20,
            _temp_dir=folder,
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}},
        )
        try:
            return _measure(ray, Size(steps, batch, features, classes, embedding))
        finally:
            ray.shutdown()


if __name__ == "__main__":
    print(f"{steps_per_second(1000):.0f} steps/s")
