"""FedAdOb's algorithm 3 with both forms of the passport layer, against a loop in plain torch."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laboratory import close, federation
from nonempty import nonempty
from oneprocess import LocalFederation
from torch import nn

from vflens.models.networks.passport import PassportLayer
from vflens.models.networks.training import Bottom, Top
from vflens.models.softmax_regression import batches
from vflens.randomness import stream
from vflens.types import Phase, Point

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "sample": 60},
    "split": {"kind": "image_tiles", "rows": 1, "columns": 1},
    "model": {"architecture": "cnn", "top": [8], "precision": "float64"},
    "training": {"optimizer": "sgd", "epochs": 2, "batch_size": 20, "learning_rate": 0.1, "l2": 0.01},
    "attacks": [],
}
PASSPORT: dict[str, Any] = {"name": "passport", "largest_mean": 3.0, "sigma": 0.5}


class Formula(nn.Module):
    """A layer behind the passport that ``start`` has, written down anew with torch's own batch norm."""

    def __init__(self, start: PassportLayer, secret: bytes, run: str, name: str, settings: Any) -> None:
        super().__init__()
        self.weight, self.encoder, self.decoder = (
            nn.Parameter(m.weight.detach().clone()) for m in (start.layer, start.encoder, start.decoder)
        )
        self.padding = getattr(start.layer, "padding", 0)
        self.secret, self.run, self.name, self.settings = secret, run, name, settings
        self.first = stream(secret, "defense", run, "train", 0, 0, "wrap_model", 0, "")
        self.first.integers(2**63)  # of the autoencoder's start
        self.means = self.first.uniform(-3, 0, (2, self.weight.shape[1]))
        self.norm = nn.BatchNorm2d(len(self.weight), affine=False, dtype=torch.float64)
        self.fixed: list[torch.Tensor] = []
        self.exchange = Phase.TRAIN.value, 0, 0

    def keys(self, shape: tuple[int, ...]) -> list[torch.Tensor]:
        fixed = self.settings["keys"] == "fixed"
        if self.fixed and fixed:
            return self.fixed
        drawn = self.first if fixed else stream(self.secret, "rekey", self.run, *self.exchange, self.name)
        means = self.means.reshape(2, -1, *[1] * (len(shape) - 1))
        found = [torch.from_numpy(m + 0.5 * drawn.standard_normal(shape)) for m in means]
        self.fixed = found
        return found

    def applied(self, x: torch.Tensor) -> torch.Tensor:
        if self.weight.dim() == 2:
            return x @ self.weight.T
        return nn.functional.conv2d(x, self.weight, padding=self.padding)

    def parameter(self, key: torch.Tensor) -> torch.Tensor:
        z = self.applied(key[None])[0].flatten(1) if key.dim() == 3 else self.applied(key)[:, None]
        pooled = self.settings["order"] == "pool_first"
        places = z.mean(dim=1, keepdim=True) if pooled else z
        return (self.decoder @ nn.functional.leaky_relu(self.encoder @ places)).mean(dim=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, shift = map(self.parameter, self.keys(tuple(x.shape[1:])))
        u, authors = self.applied(x), self.settings["normalise"] == "authors"
        if x.dim() == 4:
            u = self.norm(u) if authors else u
            return scale[:, None, None] * u + shift[:, None, None]
        return scale.tanh() * u + shift.tanh() if authors else scale * u + shift


def _formula(party: Any, name: str, settings: Any) -> tuple[nn.Module, nn.Module, PassportLayer]:
    """The party's network with :class:`Formula` for its passport, the network itself, and the passport."""
    part = party.run.model
    assert isinstance(part, Bottom | Top)
    module = next(iter(part.module.values()))
    ((place, passport),) = [(n, m) for n, m in module.named_modules() if isinstance(m, PassportLayer)]
    again = Formula(passport, party.secret, party.config.run, f"{name}.{place}", settings)
    children = [again if n == place else _copied(m) for n, m in module.named_children()]
    return nn.Sequential(*children), module, passport


def _copied(module: nn.Module) -> nn.Module:
    if isinstance(module, nn.Linear | nn.Conv2d):
        copy = type(module)(**_shape(module), dtype=torch.float64)
        copy.load_state_dict({n: t.clone() for n, t in module.state_dict().items()})
        return copy
    return module


def _shape(module: nn.Linear | nn.Conv2d) -> dict[str, Any]:
    if isinstance(module, nn.Linear):
        return {"in_features": module.in_features, "out_features": module.out_features}
    sizes = {"in_channels": module.in_channels, "out_channels": module.out_channels}
    return {**sizes, "kernel_size": module.kernel_size, "padding": module.padding}


def _trained(local: LocalFederation, bottom: nn.Module, top: nn.Module) -> None:
    active, passive = local.active, local.passive["passive"]
    x, y = torch.tensor(passive.run.inputs[:]), torch.tensor(active.run.labels)
    parameters = [*bottom.parameters(), *top.parameters()]
    passports = [m for part in (bottom, top) for m in part.modules() if isinstance(m, Formula)]
    step = itertools.count()
    for epoch in range(2):
        for rows in batches(
            active.run.federation.train, 20, stream(local.coordinator.secret, "batches", epoch)
        ):
            exchange = Phase.TRAIN.value, epoch, next(step)
            for passport in passports:
                passport.exchange = exchange
            loss = nn.functional.cross_entropy(top(bottom(x[rows])), y[rows])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for p, gradient in zip(parameters, gradients, strict=True):
                    p.sub_(0.1 * (gradient + 0.02 * p))


@pytest.mark.parametrize("order", ["paper", "pool_first"])
@pytest.mark.parametrize("keys", ["redrawn", "fixed"])
@pytest.mark.parametrize("normalise", ["none", "authors"])
def test_both_parties_learn_and_predict_as_by_a_torch_loop(
    tmp_path: Path, normalise: str, keys: str, order: str
) -> None:
    """The start is the federation's; means, keys, moments and all steps are the loop's own."""
    settings = {"normalise": normalise, "keys": keys, "order": order}
    defenses = [{**PASSPORT, **settings, "at": at} for at in ("passive", "active")]
    local = federation(tmp_path, **SETTINGS, defenses=defenses)
    local.coordinator.prepare()
    active, passive = local.active, local.passive["passive"]
    bottom, own, passport = _formula(passive, "bottom", settings)
    top, own_top, _ = _formula(active, "top", settings)
    before = passport.layer.weight.detach().clone()
    local.coordinator.train()
    _trained(local, bottom, top)
    assert not torch.equal(before, passport.layer.weight)
    for ours, theirs in ((own, bottom), (own_top, top)):
        learned = [p for p in ours.parameters() if p.requires_grad]
        for mine, other in zip(
            nonempty(sorted(learned, key=_size)), sorted(theirs.parameters(), key=_size), strict=True
        ):
            np.testing.assert_allclose(mine.detach(), other.detach(), rtol=0, atol=1e-12)
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    local.complete()
    (received,) = [
        r for r in active.transcript if r.point is Point.EMBEDDING and r.exchange.phase is Phase.PREDICT
    ]
    for module in bottom.modules():
        if isinstance(module, Formula):
            module.exchange = Phase.PREDICT.value, received.exchange.round, 0
    with torch.no_grad():
        wanted = bottom.eval()(torch.tensor(passive.run.inputs[:])[received.rows.copy()])
    np.testing.assert_allclose(received.tensor("embedding"), wanted, rtol=0, atol=1e-12)
    close(local)


def _size(parameter: nn.Parameter) -> tuple[int, ...]:
    return tuple(parameter.shape)
