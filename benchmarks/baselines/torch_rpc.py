"""Three parties over `torch.distributed.rpc` (TensorPipe): remote method calls, no checks, no log.

A call returns when its function does, so the active party's optimiser step opens its next call.
"""

from __future__ import annotations

import os
import warnings
from functools import partial
from multiprocessing.queues import SimpleQueue
from typing import Any

import torch
from torch import Tensor
from torch.distributed import rpc

from benchmarks.baselines.parts import Active, Passive, Size, batches, loopback, rate, three_processes, total

NAMES = ("coordinator", "passive", "active")
_party: dict[str, Passive | Active] = {}


def _step(rows: Tensor, block: Tensor | None) -> Tensor:
    """Runs at a party: one step of the half that lives there."""
    party = _party["here"]
    if isinstance(party, Passive):
        return party.step(rows, block)
    assert block is not None
    return party.step(rows, block)


def _coordinator(size: Size) -> float:
    rows = batches(total(size.steps), size.batch)
    grad: Tensor | None = None

    def step(t: int) -> None:
        nonlocal grad
        logits = rpc.rpc_sync("passive", _step, (rows[t], grad))
        grad = rpc.rpc_sync("active", _step, (rows[t], logits))

    return rate(size.steps, step)


def _direct(size: Size) -> float:
    """The active party drives: its update overlaps with the passive party's step."""
    party, rows = Active(size), batches(total(size.steps), size.batch)
    grad: Tensor | None = None

    def step(t: int) -> None:
        nonlocal grad
        block = rpc.rpc_async("passive", _step, (rows[t], grad))
        party.update()
        grad = party.step(rows[t], block.wait())

    return rate(size.steps, step)


def _work(rank: int, results: SimpleQueue[float], meet: str, size: Size, direct: bool) -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="You are using a Backend")  # torch's own call
    if name := loopback():
        os.environ.setdefault("TP_SOCKET_IFNAME", name)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    if rank:
        _party["here"] = (Passive if NAMES[rank] == "passive" else Active)(size)
    init: Any = rpc.init_rpc
    init(
        NAMES[rank],
        rank=rank,
        world_size=3,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(init_method=meet, rpc_timeout=60),
    )
    if NAMES[rank] == ("active" if direct else "coordinator"):
        results.put((_direct if direct else _coordinator)(size))
    rpc.shutdown()


steps_per_second = partial(three_processes, _work)

if __name__ == "__main__":
    print(f"{steps_per_second(2000):.0f} steps/s")
