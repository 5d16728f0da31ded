"""Reference: federated averaging in one plain torch loop, Adam anew in each round; no federation."""

from __future__ import annotations

from copy import deepcopy
from multiprocessing.queues import SimpleQueue
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.baselines.parts import in_processes


class Federation(NamedTuple):
    """How much to train: every client has ``rows`` images of ``side`` by ``side`` pixels."""

    side: int
    clients: int
    rows: int
    rounds: int
    batch: int
    rate: float
    l2: float


def lenet() -> nn.Sequential:
    """From images (n, 1, 28, 28) to ten logits."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


def cnn() -> nn.Sequential:
    """From images (n, 1, 8, 8) to ten logits."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(256, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


NETWORKS = {28: lenet, 8: cnn}


def seconds_per_round(federation: Federation) -> float:
    """Seconds of a round in one new process, one numeric thread."""
    return in_processes(_work, 1, federation)


def _work(_rank: int, results: SimpleQueue[float], federation: Federation) -> None:
    torch.set_num_threads(1)
    seed, shape = torch.Generator().manual_seed(0), (federation.clients, federation.rows)
    x = torch.rand(*shape, 1, federation.side, federation.side, generator=seed)
    y = torch.randint(0, 10, shape, generator=seed)
    model = NETWORKS[federation.side]()
    _round(federation, model, x[:1, : 10 * federation.batch], y[:1])  # warm
    began = perf_counter()
    for _ in range(federation.rounds):
        _round(federation, model, x, y)
    results.put((perf_counter() - began) / federation.rounds)


def _round(federation: Federation, model: nn.Module, x: Tensor, y: Tensor) -> None:
    """Every client trains a copy for an epoch; ``model`` becomes their mean."""
    trained = [_trained(federation, deepcopy(model), *rows) for rows in zip(x, y, strict=True)]
    model.load_state_dict({name: torch.stack([t[name] for t in trained]).mean(0) for name in trained[0]})


def _trained(federation: Federation, model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    adam = torch.optim.Adam(model.parameters(), lr=federation.rate, weight_decay=2 * federation.l2)
    order = torch.randperm(len(x))
    for start in range(0, len(x), federation.batch):
        rows = order[start : start + federation.batch]
        adam.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(model(x[rows]), y[rows]))
        adam.step()
    return model.state_dict()
