"""Hijacking with labels, against a bottom model that follows what it is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from inversionview import recorded_view
from scipy.special import log_softmax
from torch import nn

from vflens.attacks.urvfl import LabelledHijacking
from vflens.defenses.gradient_scrutinizer import similarities
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.views.own_reads import SENDING
from vflens.randomness import Key
from vflens.types import Array, ColumnInfo, Exchange, Phase

COLUMNS = (ColumnInfo("a", 0.0, 1.0), ColumnInfo("b", 0.0, 1.0))
NETWORK = SplitNetwork(architecture="mlp", width=4, precision="float64")
BATCH = 32


def rows_of(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two columns whose difference says the class of a row."""
    x = rng.random((n, 2))
    return x, (x[:, 0] > x[:, 1]).astype(np.int64)


def hijacked(steps: int) -> tuple[nn.Module, Any]:
    """A target that follows torch's own Adam on the gradients sent, and the sending part."""
    rng = np.random.default_rng(5)
    public, labels = rows_of(500, rng)
    rows, own = np.arange(2, dtype=np.int32), {"public/target": public, "public labels": labels}
    view = recorded_view(NETWORK, COLUMNS, rows, predicted=[(rows, np.zeros((2, 4)))], disclosed={}, own=own)
    sender = LabelledHijacking().sender(view, Key(b"k" * 16, "sending"))
    torch.manual_seed(1)
    target, (x, y) = bottom(NETWORK, COLUMNS).to(torch.float64), rows_of(1000, rng)
    optimizer = torch.optim.Adam(target.parameters(), lr=0.002)
    for step in range(steps):
        batch = rng.integers(1000, size=BATCH)
        h, exchange = target(torch.tensor(x[batch])), Exchange("run", Phase.TRAIN, 0, step)
        sent, given = h.detach().numpy(), np.eye(view.n_classes)[y[batch]]
        optimizer.zero_grad()
        torch.autograd.backward((h * torch.tensor(sender.gradient(sent, given, exchange))).sum())
        optimizer.step()
        sender.learn(sent, given, exchange)
    return target, sender


@pytest.fixture(scope="module")
def after() -> tuple[nn.Module, Any]:
    return hijacked(120)


def test_the_gradient_sent_is_that_of_the_classifier_and_a_little_of_the_critic(
    after: tuple[nn.Module, Any],
) -> None:
    """By finite differences of the critic that its state gives."""
    _, sender = after
    net = {n.removeprefix("net/critic."): a for n, a in sender.state().items() if "critic." in n}
    h, y = np.random.default_rng(2).normal(size=(3, 4)), np.array([0, 1, 1])
    classes = len(net["2.bias"]) - 1

    def loss(h: Array) -> float:
        inner = h @ net["0.weight"].T + net["0.bias"]
        verdicts = np.where(inner > 0, inner, 0.2 * inner) @ net["2.weight"].T + net["2.bias"]
        likelihood = log_softmax(verdicts[:, 1:], axis=1)[np.arange(3), y]
        return float(-likelihood.mean() - 0.1 * verdicts[:, 0].mean())

    found = sender.gradient(h, np.eye(classes)[y], Exchange("run", Phase.TRAIN, 0, 3))
    slopes = np.zeros_like(h)
    for place in np.ndindex(h.shape):
        step = np.zeros_like(h)
        step[place] = 1e-6
        slopes[place] = (loss(h + step) - loss(h - step)) / 2e-6
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-7)


def test_gradients_of_one_label_are_more_alike_than_those_of_two(after: tuple[nn.Module, Any]) -> None:
    """They go as in an honest training, and unlike those of fsha, which reads no label."""
    target, sender = after
    x, y = rows_of(64, np.random.default_rng(8))
    h = target(torch.tensor(x)).detach().numpy()
    given = np.eye(len(sender.state()["net/critic.2.bias"]) - 1)[y]
    sent = sender.gradient(h, given, Exchange("run", Phase.TRAIN, 0, 7))
    found = similarities(sent, y)
    assert found is not None
    same, _, other, _ = found
    assert same > other + 0.2


def test_the_pilots_embeddings_are_inverted_and_have_the_classifiers_classes(
    after: tuple[nn.Module, Any],
) -> None:
    """They fit rows that it has not seen: a target that comes to be the pilot is read as well."""
    _, sender = after
    x, y = rows_of(300, np.random.default_rng(9))
    pilot, kept = bottom(NETWORK, COLUMNS).to(torch.float64), sender.state()
    from_arrays(pilot, {n.removeprefix("net/pilot."): a for n, a in kept.items() if "pilot." in n})
    h = pilot(torch.tensor(x)).detach().numpy()
    rows, own = np.arange(300, dtype=np.int32), {SENDING + n: a for n, a in kept.items()}
    view = recorded_view(NETWORK, COLUMNS, rows, predicted=[(rows, h)], disclosed={}, own=own)
    found = LabelledHijacking().reconstruct(view, rng=np.random.default_rng(0)).values
    assert np.mean((found - x) ** 2) < 0.01 * x.var()
    slope = sender.gradient(h, np.eye(2)[y], Exchange("run", Phase.TRAIN, 0, 3))
    other = sender.gradient(h, np.eye(2)[1 - y], Exchange("run", Phase.TRAIN, 0, 3))
    surer = np.linalg.norm(slope, axis=1) < np.linalg.norm(other, axis=1)
    assert surer.mean() > 0.9  # a likely class is little to change for


def test_what_it_keeps_is_taken_up(after: tuple[nn.Module, Any]) -> None:
    _, sender = after
    _, fresh = hijacked(0)
    fresh.load(sender.state())
    x, y = rows_of(8, np.random.default_rng(8))
    given = x @ np.ones((2, 4)), np.eye(len(sender.state()["net/critic.2.bias"]) - 1)[y]
    exchange = Exchange("run", Phase.TRAIN, 0, 9)
    assert sender.gradient(*given, exchange).tobytes() == fresh.gradient(*given, exchange).tobytes()
