"""What the baselines share: data, the two halves of a logistic regression or a split network, and process
start.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn

ROWS = 4096
LEARNING_RATE = 1e-2


class Size(NamedTuple):
    """How much to train, and on what; ``embedding`` 0 is logistic regression in float64.

    Otherwise two linear layers are summed to an embedding of that width, and a top of 32 hidden units
    follows, in float32.
    """

    steps: int
    batch: int
    features: int
    classes: int
    embedding: int = 0

    @property
    def width(self) -> int:
        """Numbers per row of a block."""
        return self.embedding or self.classes

    @property
    def dtype(self) -> torch.dtype:
        """The precision of model and blocks."""
        return torch.float32 if self.embedding else torch.float64

    def top(self) -> nn.Module:
        """From the summed blocks to logits."""
        if not self.embedding:
            return nn.Identity()
        return nn.Sequential(nn.ReLU(), nn.Linear(self.embedding, 32), nn.ReLU(), nn.Linear(32, self.classes))


def data(size: Size) -> tuple[Tensor, Tensor]:
    """Seeded columns in [0, 1) and labels that a linear model can learn."""
    seed = torch.Generator().manual_seed(0)
    x = torch.rand(ROWS, size.features, dtype=torch.float64, generator=seed)
    truth = torch.randn(size.features, size.classes, dtype=torch.float64, generator=seed)
    return x.to(size.dtype), (x @ truth).argmax(1)


def batches(steps: int, batch: int) -> Tensor:
    """Row indices of every step, the same ones for every baseline."""
    return torch.randint(0, ROWS, (steps, batch), generator=torch.Generator().manual_seed(1))


class Passive:
    """The first half of the columns, with the bias: a block out, its gradient in."""

    def __init__(self, size: Size) -> None:
        torch.set_num_threads(1)
        half = size.features // 2
        self.x = data(size)[0][:, :half].contiguous()
        self.layer = nn.Linear(half, size.width, dtype=size.dtype)
        self.adam = torch.optim.Adam(self.layer.parameters(), lr=LEARNING_RATE)
        self.out: Tensor | None = None

    def step(self, rows: Tensor, grad: Tensor | None) -> Tensor:
        """Apply the gradient of the previous step, then answer the block of `rows`."""
        if self.out is not None and grad is not None:
            self.adam.zero_grad()
            torch.autograd.backward(self.out, grad)
            self.adam.step()
        self.out = self.layer(self.x[rows])
        return self.out.detach()


class Active:
    """The other columns and the labels: the others' summed blocks in, the gradient out."""

    def __init__(self, size: Size) -> None:
        torch.set_num_threads(1)
        half = size.features // 2
        x, self.y = data(size)
        self.x = x[:, half:].contiguous()
        self.layer = nn.Linear(size.features - half, size.width, bias=False, dtype=size.dtype)
        self.top = size.top()
        self.adam = torch.optim.Adam([*self.layer.parameters(), *self.top.parameters()], lr=LEARNING_RATE)
        self.loss = nn.CrossEntropyLoss()
        self.waiting = False

    def step(self, rows: Tensor, others: Tensor) -> Tensor:
        """Gradient of the mean loss in the blocks; `update` may follow after it has been sent."""
        self.update()
        others.requires_grad_()
        logits = self.top(others + self.layer(self.x[rows]))
        torch.autograd.backward(self.loss(logits, self.y[rows]))
        self.waiting = True
        assert others.grad is not None
        return others.grad

    def update(self) -> None:
        """Apply the gradient that `step` left behind, once."""
        if self.waiting:
            self.adam.step()
            self.adam.zero_grad()
            self.waiting = False


def rate(steps: int, step: Callable[[int], None]) -> float:
    """Steps per second of `step(t)` over the last `steps` of `total(steps)` calls."""
    warm = total(steps) - steps
    for t in range(warm):
        step(t)
    start = perf_counter()
    for t in range(warm, warm + steps):
        step(t)
    return steps / (perf_counter() - start)


def total(steps: int) -> int:
    """Measured steps with the warm-up before them."""
    return steps + max(20, steps // 10)


def three_processes(
    work: Callable[..., None],
    steps: int,
    *,
    batch: int = 256,
    features: int = 20,
    classes: int = 2,
    embedding: int = 0,
    direct: bool = False,
) -> float:
    """Federated steps per second of coordinator, passive and active party, each doing its `work`; ``direct``
    passes the first by.
    """
    with TemporaryDirectory() as folder:
        meet = (Path(folder) / "meet").as_uri()
        return in_processes(work, 3, meet, Size(steps, batch, features, classes, embedding), direct)


def in_processes(work: Callable[..., None], count: int, *args: Any) -> float:
    """Run `work(rank, results, *args)` in `count` new processes; the number that one of them puts."""
    results = get_context("spawn").SimpleQueue()
    start: Any = spawn
    with patch.dict(os.environ, OMP_NUM_THREADS="1"):  # the children read it as they import torch
        start(work, args=(results, *args), nprocs=count, daemon=True)
    return float(results.get())


def loopback() -> str | None:
    """Name of the loopback interface, which differs between systems."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
