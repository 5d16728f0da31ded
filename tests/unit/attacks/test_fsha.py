"""Feature-space hijacking against a bottom model that follows what it is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from inversionview import recorded_view
from torch import Tensor, nn

from vflens.attacks.fsha import FeatureSpaceHijacking
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.views.vertical import AdversaryView
from vflens.randomness import Key
from vflens.types import Array, ColumnInfo, Exchange, Phase

COLUMNS = (ColumnInfo("a", 0.0, 1.0), ColumnInfo("b", 0.0, 1.0))
NETWORK = SplitNetwork(architecture="mlp", width=4, precision="float64")
BATCH, STEPS = 32, 300
LABELS = np.eye(2)[np.zeros(BATCH, np.int64)]  # which it does not read


def _rows(n: int, rng: np.random.Generator) -> Array:
    """Two skewed columns, each in its own way: their distribution is that of no other order or sign."""
    return np.stack([rng.random(n) ** 3, 0.7 * rng.random(n) ** 0.3 + 0.3 * (rng.random(n) < 0.2)], axis=1)


def _view(rows: Array, h: Array, own: dict[str, Array]) -> AdversaryView:
    return recorded_view(NETWORK, COLUMNS, rows, predicted=[(rows, h)], disclosed={}, own=own)


def _hijacked(steps: int) -> tuple[nn.Module, Any]:
    """A target that follows torch's own Adam on the gradients sent, and the sending part: no federation."""
    rng = np.random.default_rng(5)
    own = {"public/target": _rows(500, rng), "public labels": np.zeros(500, np.int64)}
    rows = np.arange(2, dtype=np.int32)
    sender = FeatureSpaceHijacking().sender(_view(rows, np.zeros((2, 4)), own), Key(b"k" * 16, "sending"))
    torch.manual_seed(1)
    target, private = bottom(NETWORK, COLUMNS).to(torch.float64), _rows(1000, rng)
    optimizer = torch.optim.Adam(target.parameters(), lr=0.002)
    for step in range(steps):
        h = target(torch.tensor(private[rng.integers(1000, size=BATCH)]))
        exchange, sent = Exchange("run", Phase.TRAIN, 0, step), h.detach().numpy()
        optimizer.zero_grad()
        torch.autograd.backward((h * torch.tensor(sender.gradient(sent, LABELS, exchange))).sum())
        optimizer.step()
        sender.learn(sent, LABELS, exchange)
    return target, sender


def _energy_distance(x: Tensor, y: Tensor) -> float:
    """Székely and Rizzo's, 0 for equal distributions."""
    return float(2 * torch.cdist(x, y).mean() - torch.cdist(x, x).mean() - torch.cdist(y, y).mean())


def test_the_targets_embeddings_come_to_be_distributed_as_those_of_the_pilot() -> None:
    """By a distance that the attack does not use, on rows that neither side has seen."""
    new = torch.tensor(_rows(300, np.random.default_rng(9)))
    distances = []
    for steps in (1, STEPS):
        target, sender = _hijacked(steps)
        pilot = bottom(NETWORK, COLUMNS).to(torch.float64)
        arrays = {n.removeprefix("net/pilot."): a for n, a in sender.state().items() if "pilot." in n}
        from_arrays(pilot, arrays)
        with torch.no_grad():
            distances.append(_energy_distance(target(new), pilot(new)))
    assert distances[1] < distances[0] / 2


def test_the_gradient_sent_is_that_of_the_critics_mean() -> None:
    """By finite differences of the critic that its state gives."""
    _, sender = _hijacked(3)
    net = {n.removeprefix("net/critic."): a for n, a in sender.state().items() if "critic." in n}
    h = np.random.default_rng(2).normal(size=(3, 4))

    def loss(h: Array) -> float:
        inner = h @ net["0.weight"].T + net["0.bias"]
        return float(-(np.where(inner > 0, inner, 0.2 * inner) @ net["2.weight"].T + net["2.bias"]).mean())

    sent = sender.gradient(h, LABELS[:3], Exchange("run", Phase.TRAIN, 0, 3))
    slopes = np.zeros_like(h)
    for place in np.ndindex(h.shape):
        step = np.zeros_like(h)
        step[place] = 1e-6
        slopes[place] = (loss(h + step) - loss(h - step)) / 2e-6
    np.testing.assert_allclose(sent, slopes, rtol=1e-6, atol=1e-7)


def test_after_an_honest_training_it_says_what_it_lacks() -> None:
    view = _view(np.arange(2, dtype=np.int32), np.zeros((2, 4)), {"public/target": np.zeros((3, 2))})
    with pytest.raises(KnowledgeError, match="sent the gradients of its loss"):
        FeatureSpaceHijacking().reconstruct(view, rng=np.random.default_rng(0))
