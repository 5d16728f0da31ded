"""Three parties over `torch.distributed` send and recv (gloo): bare tensors, no checks, no log."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial
from multiprocessing.queues import SimpleQueue

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.baselines.parts import Active, Passive, Size, batches, loopback, rate, three_processes, total

COORDINATOR, PASSIVE, ACTIVE = range(3)


def _coordinator(size: Size) -> float:
    rows = batches(total(size.steps), size.batch)
    grad = torch.zeros(size.batch, size.width, dtype=size.dtype)
    logits = torch.empty_like(grad)

    def step(t: int) -> None:
        dist.send(rows[t], PASSIVE)
        dist.send(grad, PASSIVE)
        dist.send(rows[t], ACTIVE)
        dist.recv(logits, PASSIVE)
        dist.send(logits, ACTIVE)
        dist.recv(grad, ACTIVE)

    return rate(size.steps, step)


def _direct(size: Size) -> float:
    """The active party drives: its update overlaps with the passive party's step."""
    party, rows = Active(size), batches(total(size.steps), size.batch)
    grad = torch.zeros(size.batch, size.width, dtype=size.dtype)

    def step(t: int) -> None:
        nonlocal grad
        dist.send(rows[t], PASSIVE)
        dist.send(grad, PASSIVE)
        party.update()
        block = torch.empty_like(grad)
        dist.recv(block, PASSIVE)
        grad = party.step(rows[t], block)

    return rate(size.steps, step)


def _passive(party: Passive, steps: int, rows: Tensor, grad: Tensor, aggregator: int) -> None:
    for t in range(total(steps)):
        dist.recv(rows, aggregator)
        dist.recv(grad, aggregator)
        dist.send(party.step(rows, grad if t else None), aggregator)


def _active(party: Active, steps: int, rows: Tensor, logits: Tensor) -> None:
    for _ in range(total(steps)):
        dist.recv(rows, COORDINATOR)
        dist.recv(logits, COORDINATOR)
        dist.send(party.step(rows, logits.clone()), COORDINATOR)
        party.update()


def _work(rank: int, results: SimpleQueue[float], meet: str, size: Size, direct: bool) -> None:
    torch.set_num_threads(1)
    if name := loopback():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    dist.init_process_group("gloo", meet, timedelta(seconds=60), world_size=3, rank=rank)
    rows = torch.empty(size.batch, dtype=torch.int64)
    block = torch.empty(size.batch, size.width, dtype=size.dtype)
    if rank == PASSIVE:
        _passive(Passive(size), size.steps, rows, block, ACTIVE if direct else COORDINATOR)
    elif direct:
        if rank == ACTIVE:
            results.put(_direct(size))
    elif rank == COORDINATOR:
        results.put(_coordinator(size))
    else:
        _active(Active(size), size.steps, rows, block)
    dist.barrier()
    dist.destroy_process_group()


steps_per_second = partial(three_processes, _work)

if __name__ == "__main__":
    print(f"{steps_per_second(2000):.0f} steps/s")
