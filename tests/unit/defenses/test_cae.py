"""The confusional autoencoder: its loss by another route, codes that hide and decode, a query's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laboratory import close, federation
from scipy.stats import entropy

from vflens.defenses import cae
from vflens.defenses.cae import CAE
from vflens.errors import ConfigError
from vflens.plugins.defense import Context
from vflens.protocol.acts import Query
from vflens.types import Array, Exchange, Owner, Phase


def _fitted(defense: CAE, k: int) -> Context:
    owner = Owner("active", n_classes=k)
    state = defense.fit(owner, np.random.default_rng(3))
    rows = np.arange(k, dtype=np.int32)
    return Context(
        owner, Exchange("run", Phase.TRAIN, 0, 0), rows, state, hook="on_labels", position=0, secret=b"secret"
    )


def _by_autograd(defense: CAE, y: Array, layers: list[Array]) -> tuple[float, list[Array]]:
    """10·CE(ŷ, y) − λ₁·CE(softmax ỹ, y) − λ₂·H(ỹ) and its gradient, from torch's own losses."""
    weights = [torch.tensor(layer, requires_grad=True) for layer in layers]

    def net(x: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.linear(x, one[:-1].T, one[-1]).relu()
        return torch.nn.functional.linear(hidden, two[:-1].T, two[-1])

    target = torch.tensor(y)
    code = net(target, weights[0], weights[1]).softmax(dim=1)
    crossed = torch.nn.functional.cross_entropy
    value: Any = 10 * crossed(net(code, weights[2], weights[3]), target) - defense.confusion * crossed(
        code, target
    )
    value -= defense.entropy * torch.special.entr(code).sum(dim=1).mean()
    value.backward()
    return value.item(), [w.grad.numpy() for w in weights if w.grad is not None]


def test_the_loss_and_its_gradient_are_those_of_autograd() -> None:
    rng = np.random.default_rng(0)
    y = rng.dirichlet(np.ones(3), 20)
    layers = [rng.normal(size=shape) for shape in [(4, 7), (8, 3), (4, 7), (8, 3)]]
    defense = CAE(confusion=0.7, entropy=1.3)
    found, gradient = defense._loss(y, [layer.shape for layer in layers])(
        np.concatenate([layer.ravel() for layer in layers])
    )
    value, expected = _by_autograd(defense, y, layers)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, np.concatenate([g.ravel() for g in expected]), atol=1e-12)


@pytest.mark.parametrize("k", [2, 5, 10])
def test_codes_name_other_classes_and_predictions_near_them_are_decoded(k: int) -> None:
    defense = CAE()
    context = _fitted(defense, k)
    codes = defense.on_labels(np.eye(k), context)
    assert (codes.argmax(axis=1) != np.arange(k)).mean() >= 0.8
    near = 0.97 * codes[:, None] + 0.03 * np.random.default_rng(1).dirichlet(np.ones(k), (1, 50))
    decoded = defense.on_outputs(np.log(near.reshape(-1, k)), context)
    np.testing.assert_allclose(np.exp(decoded).sum(axis=1), 1.0)
    assert (decoded.argmax(axis=1) == np.repeat(np.arange(k), 50)).mean() > 0.99


def test_it_claims_the_least_entropy_of_its_codes_and_more_weight_gives_more() -> None:
    least = []
    for weight in (0.0, 2.0):
        defense = CAE(entropy=weight)
        context = _fitted(defense, 4)
        claimed = defense.claim(context.state).label_entropy
        codes = defense.on_labels(np.eye(4), context)
        assert claimed == pytest.approx(min(entropy(code) for code in codes), rel=1e-9)
        least.append(claimed)
    assert np.diff(np.array(least, float)) > 0.02


def test_codes_that_cannot_be_decoded_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cae, "_STEPS", 0)
    with pytest.raises(
        ConfigError, match=r"cae at 'active': entropy = 1 and confusion = 1 leave codes of 10"
    ):
        _fitted(CAE(), 10)


def test_the_owner_and_its_operator_read_decoded_predictions(tmp_path: Path) -> None:
    """What is released stays coded."""
    settings: dict[str, Any] = {
        "data": {"name": "breast_cancer"},
        "training": {"epochs": 10, "batch_size": 32, "learning_rate": 0.05},
    }
    local = federation(tmp_path, defenses=[{"name": "cae", "at": "active"}], **settings)
    local.run()
    active, rows = local.active, local.active.run.federation.predict
    labels = active.run.labels[rows]
    answered, read = active.query(Query("all")).scores, active.predictions.received(rows)
    np.testing.assert_array_equal(answered, read)
    coded = active.predictions.ask(rows)
    assert (read.argmax(axis=1) == labels).mean() > 0.9
    assert (coded.argmax(axis=1) == labels).mean() < 0.1
    np.testing.assert_allclose(np.exp(read).sum(axis=1), 1.0)
    close(local)
