"""Reference: the whole model in one torch process, Adam, mini-batches by index; no federation."""

from __future__ import annotations

from multiprocessing.queues import SimpleQueue

import torch
from torch import nn

from benchmarks.baselines.parts import LEARNING_RATE, Size, batches, data, in_processes, rate, total


def _work(_rank: int, results: SimpleQueue[float], size: Size) -> None:
    torch.set_num_threads(1)
    x, y = data(size)
    rows = batches(total(size.steps), size.batch)
    model = nn.Sequential(nn.Linear(size.features, size.width, dtype=size.dtype), size.top())
    adam = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    loss = nn.CrossEntropyLoss()

    def step(t: int) -> None:
        adam.zero_grad()
        torch.autograd.backward(loss(model(x[rows[t]]), y[rows[t]]))
        adam.step()

    results.put(rate(size.steps, step))


def steps_per_second(
    steps: int, *, batch: int = 256, features: int = 20, classes: int = 2, embedding: int = 0
) -> float:
    """Training steps per second of the whole model in one new process, one numeric thread."""
    return in_processes(_work, 1, Size(steps, batch, features, classes, embedding))


if __name__ == "__main__":
    print(f"{steps_per_second(2000):.0f} steps/s")
