"""Federated averaging against loops in plain NumPy and torch, which know nothing of parties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from horizontal import clients_of, deal, federation, scaled, server_of, table
from nonempty import nonempty
from torch import nn

from vflens.clients.horizontal.client import Client
from vflens.models.networks.passport import PassportLayer
from vflens.models.networks.training import Top
from vflens.randomness import secret_from_seed, stream
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo

TABLES = {"a": table(30, 1), "b": table(17, 2), "c": table(23, 3)}
SGD: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.5, "l2": 0.01, "batch_size": 8}
Named = Mapping[str, Array]


def trained(folder: Path, tables: Mapping[str, Table], **server: Any) -> Named:
    """The parameters that all clients have at the end."""
    local = federation(deal(folder, tables, **server))
    local.run()
    found: Named = server_of(local).parameters
    for client in clients_of(local).values():
        assert {n: v.tobytes() for n, v in client.run.model.parameters().items()} == {
            n: v.tobytes() for n, v in found.items()
        }
    return found


def softmax_gradient(x: Array, y: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    z = x @ weight.T + bias
    z -= z.max(axis=1, keepdims=True)
    c = np.exp(z)
    c /= c.sum(axis=1, keepdims=True)
    return (c - y).T @ x / len(x) + 0.02 * weight, (c - y).mean(axis=0) + 0.02 * bias


def shuffled(name: str, number: int, epoch: int, rows: int) -> list[Array]:
    secret = secret_from_seed(secret_from_seed("7", name).hex())
    drawn = stream(secret, "local batches", number, epoch)
    order = drawn.permutation(np.arange(rows, dtype=np.int32))
    return [order[i : i + 8] for i in range(0, rows, 8)]


@pytest.mark.parametrize("weights", ["rows", "equal"])
def test_softmax_regression_is_averaged_as_by_plain_loops(tmp_path: Path, weights: str) -> None:
    horizontal = {"rounds": 3, "local_epochs": 2, "weights": weights}
    found = trained(tmp_path, TABLES, training=SGD, horizontal=horizontal)
    weight, bias = np.zeros((3, 4)), np.zeros(3)
    sizes = {name: len(scaled(t)[0]) for name, t in TABLES.items()}
    shares = {n: s / sum(sizes.values()) if weights == "rows" else 1 / 3 for n, s in sizes.items()}
    for number in range(3):
        ends = {}
        for name, own in TABLES.items():
            (x, y), w, b = scaled(own), weight.copy(), bias.copy()
            for epoch in range(2):
                for batch in shuffled(name, number, epoch, len(x)):
                    dw, db = softmax_gradient(x[batch], y[batch], w, b)
                    w, b = w - 0.5 * dw, b - 0.5 * db
            ends[name] = w, b
        weight = np.sum([shares[n] * w for n, (w, _) in ends.items()], axis=0)
        bias = np.sum([shares[n] * b for n, (_, b) in ends.items()], axis=0)
    np.testing.assert_allclose(found["weight"], weight, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["bias"], bias, rtol=0, atol=1e-12)


def test_one_client_with_one_full_batch_a_round_descends_the_gradient(tmp_path: Path) -> None:
    training = {**SGD, "batch_size": 1000}
    found = trained(tmp_path, {"a": TABLES["a"]}, training=training, horizontal={"rounds": 5})
    (x, y), weight, bias = scaled(TABLES["a"]), np.zeros((3, 4)), np.zeros(3)
    for _ in range(5):
        dw, db = softmax_gradient(x, y, weight, bias)
        weight, bias = weight - 0.5 * dw, bias - 0.5 * db
    np.testing.assert_allclose(found["weight"], weight, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found["bias"], bias, rtol=0, atol=1e-13)


def images(rows: int, seed: int) -> Table:
    """Rows of 4 by 4 pixels."""
    pixels = np.clip(np.random.default_rng(seed).normal(size=(rows, 16)), -4, 4)
    columns = tuple(ColumnInfo(f"p{j}", -4.0, 4.0, pixel=(j // 4, j % 4, 0)) for j in range(16))
    return replace(table(rows, seed), columns=columns, features=pixels)


def mlp() -> nn.Sequential:
    """Four columns, two hidden layers below the cut, one above."""
    bottom = [nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5)]
    return nn.Sequential(*bottom, nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def cnn() -> nn.Module:
    """An image of 4 by 4 pixels, with torch's own batch norm."""
    first = [nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 3))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], dict[str, Any], dict[str, Table]]] = {
    "mlp": (mlp, {"width": 5, "hidden": [6]}, TABLES),
    "cnn": (cnn, {"batch_norm": True}, {"a": images(30, 1), "b": images(17, 2), "c": images(23, 3)}),
}


@pytest.mark.parametrize("method", ["fedavg", "splitfed"])
@pytest.mark.parametrize("architecture", NETWORKS)
def test_a_network_is_averaged_as_by_a_torch_loop(tmp_path: Path, architecture: str, method: str) -> None:
    """With a batch norm its running moments too. SplitFed cuts each client's network, and trains the same."""
    build, own, tables = NETWORKS[architecture]
    local = federation(_dealt(tmp_path, architecture, own, tables, method))
    server = server_of(local)
    server.prepare()
    start = dict(server.parameters)
    server.train()
    state = {name: torch.from_numpy(value.copy()) for name, value in start.items()}
    for number in range(2):
        ends = [_trained(build(), state, name, held, number) for name, held in tables.items()]
        state = {name: torch.stack([end[name] for end in ends]).mean(dim=0) for name in state}
    for name, value in nonempty(server.parameters.items()):
        np.testing.assert_allclose(value, state[name].numpy(), rtol=0, atol=1e-12)
        assert not np.array_equal(value, start[name])
    for party in local.members():
        party.close()


@pytest.mark.parametrize("architecture", NETWORKS)
def test_a_private_bottom_is_not_averaged(tmp_path: Path, architecture: str) -> None:
    build, own, tables = NETWORKS[architecture]
    local = federation(_dealt(tmp_path, architecture, own, tables, "lg_fedavg"))
    server, clients = server_of(local), clients_of(local)
    server.prepare()
    states = {n: _held(c) | _tensors(server.parameters) for n, c in clients.items()}
    server.train()
    for number in range(2):
        states = {n: _trained(build(), states[n], n, held, number) for n, held in tables.items()}
        shared = {n: torch.stack([s[n] for s in states.values()]).mean(dim=0) for n in server.parameters}
        states = {n: {**state, **shared} for n, state in states.items()}
    assert all(name.startswith("top.") for name in nonempty(server.parameters))
    for name, client in nonempty(clients.items()):
        _assert_held(client, states[name])
    for party in local.members():
        party.close()


@pytest.mark.parametrize("keys", ["redrawn", "fixed"])
@pytest.mark.parametrize("normalise", ["none", "authors"])
def test_a_passport_learns_as_by_a_torch_loop(tmp_path: Path, normalise: str, keys: str) -> None:
    """FedAdOb's algorithm 2: keys drawn for each batch, W, E and D learn from it, W alone of them has the
    layer's name, and only the top is averaged.
    """
    _, own, tables = NETWORKS["mlp"]
    changed = {"normalise": normalise, "keys": keys}
    passports = [{"name": "passport", "largest_mean": 3.0, "sigma": 0.5, **changed}]
    local = federation(_dealt(tmp_path, "mlp", own, tables, "lg_fedavg", defenses=passports))
    server, clients = server_of(local), clients_of(local)
    server.prepare()
    networks = {n: _Passported(_layer(c), n, **changed) for n, c in clients.items()}
    start = {n: network.decoder.detach().clone() for n, network in networks.items()}
    states = {n: _held(c) | _tensors(server.parameters) for n, c in clients.items()}
    server.train()
    for number in range(2):
        for name, network in networks.items():
            network.number = number
            states[name] = _trained(network, states[name], name, tables[name], number)
        shared = {n: torch.stack([s[n] for s in states.values()]).mean(dim=0) for n in server.parameters}
        states = {n: {**state, **shared} for n, state in states.items()}
    for name, client in nonempty(clients.items()):
        _assert_held(client, states[name])
        assert not torch.equal(start[name], networks[name].decoder)
        np.testing.assert_allclose(
            _layer(client).decoder.weight.detach(), networks[name].decoder.detach(), rtol=0, atol=1e-12
        )
    for party in local.members():
        party.close()


class _Passported(nn.Sequential):
    """The network :func:`mlp` with a passport around the second layer, written down anew."""

    def __init__(self, start: PassportLayer, name: str, *, normalise: str, keys: str) -> None:
        super().__init__(*mlp())
        self.encoder = nn.Parameter(start.encoder.weight.detach().clone())
        self.decoder = nn.Parameter(start.decoder.weight.detach().clone())
        self.secret = secret_from_seed(secret_from_seed("7", name).hex())
        first = stream(self.secret, "defense", "tiny/run", "train", 0, 0, "wrap_model", 0, "")
        first.integers(2**63)  # of the autoencoder's start
        self.means = [torch.from_numpy(means) for means in first.uniform(-3, 0, (2, 6))]
        self.fixed = [m + 0.5 * torch.from_numpy(first.standard_normal(6)) for m in self.means]
        self.keys, self.between = keys, torch.tanh if normalise == "authors" else torch.clone
        self.number, self.step = 0, 0

    def drawn_keys(self) -> list[torch.Tensor]:
        if self.keys == "fixed":
            return self.fixed
        drawn = stream(self.secret, "rekey", "tiny/run", "train", self.number, self.step % 3, "bottom.2")
        self.step += 1
        return [means + 0.5 * torch.from_numpy(drawn.standard_normal(6)) for means in self.means]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, layer = torch.relu(self[0](x)), self[2]
        assert isinstance(layer, nn.Linear)
        weight = layer.weight
        scale, shift = (
            self.between(self.decoder @ nn.functional.leaky_relu(self.encoder @ (weight @ key)))
            for key in self.drawn_keys()
        )
        out: torch.Tensor = torch.relu(scale * (hidden @ weight.T) + shift)
        for following in list(self)[4:]:
            out = following(out)
        return out


def _layer(client: Client) -> PassportLayer:
    (found,) = (m for m in _part(client).module.modules() if isinstance(m, PassportLayer))
    return found


def _part(client: Client) -> Top:
    part = client.run.model._part
    assert isinstance(part, Top)
    return part


def _held(client: Client) -> dict[str, torch.Tensor]:
    """The parameters of the whole network at a client."""
    return _tensors(_part(client).parameters())


def _tensors(named: Named) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value.copy()) for name, value in named.items()}


def _assert_held(client: Client, state: Mapping[str, torch.Tensor]) -> None:
    held = _held(client)
    assert len(held) == len(state)
    for name, value in held.items():
        np.testing.assert_allclose(value, state[name], rtol=0, atol=1e-12)


def _dealt(
    folder: Path,
    architecture: str,
    own: Mapping[str, Any],
    tables: Mapping[str, Table],
    method: str,
    **settings: Any,
) -> dict[str, Path]:
    model = {"architecture": architecture, "top": [4], "precision": "float64", **own}
    training = {**SGD, "l2": 0.0, "learning_rate": 0.1}
    horizontal = {"rounds": 2, "local_steps": 3, "weights": "equal", "method": method}
    return deal(folder, tables, horizontal=horizontal, training=training, model=model, **settings)


def _trained(
    network: nn.Module, state: Mapping[str, torch.Tensor], name: str, own: Table, number: int
) -> dict[str, torch.Tensor]:
    """Three steps of gradient descent from ``state``."""
    network.to(torch.float64)
    keys = [key for key in network.state_dict() if key[0].isdigit() and not key.endswith("_tracked")]
    given = dict(zip(keys, (v.clone() for v in state.values()), strict=True))
    network.load_state_dict({**network.state_dict(), **given})
    x, y = map(torch.from_numpy, scaled(own))
    for batch in [b for epoch in range(3) for b in shuffled(name, number, epoch, len(x))][:3]:
        network.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(network(x[batch]), y[batch]))
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.grad is not None:  # none of the bias that a passport replaces
                    parameter.sub_(0.1 * parameter.grad)
    return dict(zip(state, map(network.state_dict().__getitem__, keys), strict=True))
