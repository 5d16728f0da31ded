"""MID and distance correlation: their terms of the loss by independent routes; their effect in training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laboratory import deal, experiment
from scipy.integrate import quad
from scipy.stats import norm

from vflens.array import ScaledColumns
from vflens.config import ActiveConfig, PassiveConfig, load_party
from vflens.defenses.distance_correlation import DistanceCorrelation, squared_correlation
from vflens.defenses.mid import MID, Bottleneck
from vflens.errors import ConfigError
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.check import check_modules
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.training import Bottom, Top
from vflens.models.part import Keys
from vflens.models.settings import Training
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import Defense
from vflens.tables.files import read_party_table
from vflens.types import Array, ColumnInfo, Exchange, Owner, Phase, Role

COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(6))
NETWORK = SplitNetwork(architecture="mlp", width=4, hidden=(8,), top=(6,), precision="float64")
X = np.random.default_rng(0).random((64, 6))


def _exchange(step: int, phase: Phase = Phase.TRAIN) -> Exchange:
    return Exchange("run", phase, 0, step)


def _chain(defense: Defense, role: Role = Role.PASSIVE) -> DefenseChain:
    owner = Owner("party", ScaledColumns(X), role=role)
    return DefenseChain(lambda: owner, [("it", defense)], b"secret")


def _bottom(defense: Defense, **changes: Any) -> Bottom:
    chain, training = _chain(defense), Training(learning_rate=0.02, **changes)
    start = _exchange(0)
    keys = Keys.under(b"secret")
    return Bottom(NETWORK, COLUMNS, training, keys, chain.wrap(start), penalty=chain.penalty(start))


# -- distance correlation


def _naive(a: Array, b: Array) -> float:
    """DCor from its definition, one distance at a time."""

    def centred(rows: Array) -> Array:
        d = np.array([[np.sqrt(((p - q) ** 2).sum()) for q in rows] for p in rows])
        n = len(rows)
        return np.array(
            [[d[i, j] - d[i].mean() - d[:, j].mean() + d.mean() for j in range(n)] for i in range(n)]
        )

    A, B = centred(a), centred(b)
    return float(np.sqrt((A * B).mean() / np.sqrt((A**2).mean() * (B**2).mean())))


def test_distance_correlation_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(30, 3))
    for b in (rng.normal(size=(30, 2)), a[:, :1] ** 2, np.eye(3)[rng.integers(0, 3, 30)]):
        found = squared_correlation(torch.from_numpy(a), torch.from_numpy(b))
        np.testing.assert_allclose(float(found), _naive(a, b) ** 2, rtol=1e-10)


def test_a_line_has_correlation_one_and_a_constant_none() -> None:
    a = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None].requires_grad_()
    np.testing.assert_allclose(float(squared_correlation(a, 3 - 2 * a).detach()), 1.0, rtol=1e-12)
    for constant in (torch.ones(20, 1, dtype=torch.float64), torch.zeros(20, 3, dtype=torch.float64)):
        term = DistanceCorrelation().penalty(torch.nn.Identity(), a, constant, None)  # type: ignore[arg-type]
        (slope,) = torch.autograd.grad(term, a)
        assert (slope == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_rows_have_a_finite_gradient(dtype: torch.dtype) -> None:
    """At distance 0 the root has none; relu and one-hot columns make many."""
    h = torch.tensor([[0.0, 1.0]] * 30 + [[1.0, 0.5]] * 30, dtype=dtype).requires_grad_()
    x = torch.eye(2, dtype=dtype).repeat(30, 1)
    (slope,) = torch.autograd.grad(squared_correlation(h, x), h)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("alpha", [1e-9, 3.0])
def test_embeddings_tell_less_of_the_inputs_that_they_are_trained_to_hide(alpha: float) -> None:
    """The other part of the loss keeps the first number of the embedding at the first column."""
    model = _bottom(DistanceCorrelation(alpha=alpha))
    for step in range(150):
        h = model.forward(X, _exchange(step))
        gradient = np.zeros_like(h)
        gradient[:, 0] = 2 * (h[:, 0] - X[:, 0]) / len(X)
        model.learn(X, gradient, _exchange(step))
    left = _naive(model.forward(X, _exchange(150)), X)
    assert (left < 0.5) == (alpha > 1)


@pytest.mark.parametrize("alpha", [1e-9, 1.0])
def test_the_gradient_that_leaves_takes_the_labels_out_of_embeddings(alpha: float) -> None:
    """The passive party's embedding is free; the top can read the labels only where the penalty is small."""
    chain = _chain(DistanceCorrelation(alpha=alpha), Role.ACTIVE)
    keys, start = Keys.under(b"secret"), _exchange(0)
    top = Top(NETWORK, (), width=4, classes=2, training=Training(), keys=keys, penalty=chain.penalty(start))
    y = np.eye(2)[(X[:, 0] > 0.5).astype(int)]
    h = np.hstack([X[:, :3], y[:, :1]]) * 2
    for step in range(200):
        h = h - 2.0 * top.loss_gradient(h, np.zeros((len(h), 0)), y, _exchange(step)).gradient
    assert (_naive(h, y) < 0.4) == (alpha > 0.1)


@pytest.mark.parametrize("defense", [DistanceCorrelation(), MID()], ids=lambda d: type(d).__name__)
def test_a_label_moves_the_gradients_of_other_rows_only_where_that_is_said(defense: Defense) -> None:
    """Noise on gradients beside such a term has no ε of one row."""
    chain, start, keys = _chain(defense, Role.ACTIVE), _exchange(0), Keys.under(b"secret")
    placed: Any = {"wrap": chain.wrap(start), "penalty": chain.penalty(start)}
    top = Top(NETWORK, (), width=4, classes=2, training=Training(), keys=keys, **placed)
    y = np.eye(2)[(X[:, 0] > 0.5).astype(int)]
    moved = y.copy()
    moved[0] = 1 - y[0]
    first, second = (
        top.loss_gradient(X[:, :4], np.zeros((64, 0)), labels, start).gradient for labels in (y, moved)
    )
    assert (first[0] != second[0]).any()
    assert (first[1:] != second[1:]).any() == defense.mixes_rows


# -- mid


def _divergence(mean: float, std: float) -> float:
    """KL(N(mean, std²) ‖ N(0, 1)) by quadrature."""

    def density(z: float) -> float:
        return float(norm.pdf(z, mean, std) * (norm.logpdf(z, mean, std) - norm.logpdf(z)))

    return float(quad(density, mean - 12 * std, mean + 12 * std)[0])


def _layer() -> Bottleneck:
    layer = Bottleneck(3, 0, np.random.default_rng(0))
    with torch.no_grad():
        layer.bias.add_(torch.tensor([0.5, -1.0, 0.0, 5.5, 5.0, 5.0]))
    return layer


def test_the_noise_has_the_spread_of_which_the_divergence_is_paid() -> None:
    """Means and deviations of many draws of one row; their KL by quadrature."""
    layer, h = _layer(), torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        z = layer(h.expand(40_000, 3)).detach().numpy()
    mean, std = z.mean(axis=0), z.std(axis=0)
    np.testing.assert_allclose(layer.eval()(h).detach().numpy()[0], mean, atol=5 * std.max() / 200)
    with torch.no_grad():
        layer.train()(h)
    due = sum(_divergence(m, s) for m, s in zip(mean, std, strict=True))
    assert layer.divergence is not None
    np.testing.assert_allclose(float(layer.divergence), due, rtol=0.05)
    assert 0.1 < std.min() < std.max() < 2


@pytest.mark.parametrize(("strength", "is_seen"), [(10.0, False), (1e-6, True)])
def test_a_strong_penalty_leaves_nothing_in_the_embedding(strength: float, is_seen: bool) -> None:
    model = _bottom(MID(strength=strength))
    for step in range(300):
        h = model.forward(X, _exchange(step))
        gradient = np.zeros_like(h)
        gradient[:, 0] = 2 * (h[:, 0] - 2 * X[:, 0]) / len(X)
        model.learn(X, gradient, _exchange(step))
    mean = model.forward(X, _exchange(0, Phase.PREDICT))
    assert (abs(np.corrcoef(mean[:, 0], X[:, 0])[0, 1]) * mean[:, 0].std() > 0.3) == is_seen
    model.forward(X, _exchange(300))
    (layer,) = (m for m in model.module.modules() if isinstance(m, Bottleneck))
    assert layer.divergence is not None
    assert (float(layer.divergence.detach()) > 1) == is_seen
    copied = model.copied(_exchange(0, Phase.PREDICT))  # as attacks of the own party take it
    with torch.no_grad():
        np.testing.assert_allclose(copied(torch.from_numpy(X)).numpy(), mean, rtol=1e-9)


def test_the_layer_is_drawn_from_the_partys_key_and_never_disclosed() -> None:
    model, twin = _bottom(MID()), _bottom(MID())
    plain = Bottom(NETWORK, COLUMNS, Training(), Keys.under(b"secret"))
    assert {n: a.shape for n, a in model.parameters().items()} == {
        n: a.shape for n, a in plain.parameters().items()
    }
    for name, array in model.state().items():
        np.testing.assert_array_equal(array, twin.state()[name])
    assert len(model.state()) > len(plain.state())


def test_predictions_have_no_noise_and_training_has_its_own_in_each_exchange() -> None:
    model = _bottom(MID())
    drawn = [model.forward(X, _exchange(step)) for step in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert np.abs(drawn[0] - drawn[2]).min() > 0
    whole = model.forward(X, _exchange(3, Phase.PREDICT))
    np.testing.assert_allclose(model.forward(X[5:6], _exchange(4, Phase.PREDICT)), whole[5:6], rtol=1e-12)


def _check(what: Experiment) -> None:
    loaded = [load_party(file) for file in deal(what, what.out).values()]
    parties = [config for config in loaded if isinstance(config, PassiveConfig | ActiveConfig)]
    check_modules(what.model, parties, {c.party: read_party_table(c.data) for c in parties})


@pytest.mark.parametrize("act", [partial(run, in_process=True), _check], ids=["run", "check"])
def test_a_top_without_layers_is_refused(tmp_path: Path, act: Callable[[Experiment], Any]) -> None:
    what = experiment(
        tmp_path,
        model={"architecture": "mlp", "width": 3, "trainable_top": False},
        defenses=[{"name": "mid", "at": "active"}],
    )
    with pytest.raises(ConfigError, match=r"mid at 'active': its top model begins with no linear layer"):
        act(what)


PIXELS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=(i // 12, i % 12)) for i in range(144))


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": "mlp", "hidden": (5,)},
        {"architecture": "cnn"},
        {"architecture": "lenet"},
        {"architecture": "lenet", "cut": 1},  # its top begins with a convolution
        {"architecture": "dcn", "hidden": (5, 4)},
    ],
)
def test_every_architecture_takes_the_layer_at_both_parties(settings: dict[str, Any]) -> None:
    network = SplitNetwork(**settings)
    width, start = network.embedding_width(PIXELS), _exchange(0)
    shapes = []
    for role, module in (
        (Role.PASSIVE, bottom(network, PIXELS)),
        (Role.ACTIVE, top(network, width, 3, [PIXELS])),
    ):
        owner = Owner("party", ScaledColumns(np.zeros((0, 144))), role=role)
        chain = DefenseChain(lambda owner=owner: owner, [("mid", MID())], b"secret")  # type: ignore[misc]
        rows = torch.zeros(2, 144 if role is Role.PASSIVE else width)
        shapes.append(chain.wrap(start)(module)(rows).shape)
    assert shapes == [(2, width), (2, 3)]


def test_two_layers_of_one_party_pay_each_for_itself() -> None:
    owner = Owner("party", ScaledColumns(X))
    chain = DefenseChain(lambda: owner, [("a", MID(strength=1.0)), ("b", MID(strength=10.0))], b"secret")
    start, keys = _exchange(0), Keys.under(b"secret")
    added = chain.penalty(start)
    assert added is not None
    model = Bottom(NETWORK, COLUMNS, Training(), keys, chain.wrap(start), penalty=added)
    model.forward(X, start)
    first, second = sorted(
        (m for m in model.module.modules() if isinstance(m, Bottleneck)), key=lambda m: m.position
    )
    nothing = torch.zeros(1, 1, dtype=torch.float64)
    assert first.divergence is not None
    assert second.divergence is not None
    due = first.divergence + 10 * second.divergence
    np.testing.assert_allclose(
        float(added(model.module["bottom"], nothing, nothing).detach()), float(due.detach()), rtol=1e-12
    )
