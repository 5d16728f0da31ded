"""Soteria: which features are pruned, what of the gradient passes, and where it acts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from horizontal import deal, table
from horizontal import federation as clients
from laboratory import federation
from torch import nn

from vflens.defenses._soteria import Pruned, movements, pruned
from vflens.errors import ConfigError
from vflens.types import Phase, Point


def _inner() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6, dtype=torch.float64), nn.Tanh())


def test_a_pruned_row_lacks_the_features_that_move_its_input_most() -> None:
    inner, x = _inner(), torch.rand(5, 4, dtype=torch.float64)
    given = Pruned(inner, 0.5, training_only=False)(x)
    leaf = x.clone().requires_grad_()
    h = inner(leaf)
    expected = pruned(h.detach().numpy(), movements(h, leaf), 0.5)
    np.testing.assert_array_equal(given.detach().numpy(), expected)
    assert (given == 0).sum(dim=1).tolist() == [3] * 5


def test_the_gradient_passes_through_the_other_features_alone() -> None:
    inner, x = _inner(), torch.rand(1, 4, dtype=torch.float64)
    given = Pruned(inner, 0.5, training_only=False)(x)
    given.sum().backward()
    weight = inner[0].weight.grad  # type: ignore[index]
    assert torch.equal((weight != 0).all(dim=1), given[0] != 0)
    assert torch.equal((weight == 0).all(dim=1), given[0] == 0)


def test_at_a_client_predictions_are_whole() -> None:
    inner, x = _inner(), torch.rand(5, 4, dtype=torch.float64)
    module = Pruned(inner, 0.5, training_only=True)
    assert (module(x) == 0).any()
    with torch.no_grad():
        assert torch.equal(module.eval()(x), inner(x))
        assert (Pruned(inner, 0.5, training_only=False).eval()(x) == 0).any()


MODEL = {"architecture": "mlp", "width": 10, "hidden": [12], "top": [8]}


def test_embeddings_leave_a_passive_party_pruned(tmp_path: Path) -> None:
    local = federation(tmp_path, model=MODEL, defenses=[{"name": "soteria", "at": "passive", "share": 0.4}])
    local.run()
    for phase in (Phase.TRAIN, Phase.PREDICT):
        sent = list(local.coordinator.transcript.select(Point.EMBEDDING, phases={phase}))
        own = [r.tensor("embedding") for r in sent if r.sender == "passive"]
        assert own
        assert all(((h == 0).sum(axis=1) >= 4).all() for h in own)


def test_at_the_active_party_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"defence 'soteria' at active 'active' would never act"):
        federation(tmp_path, model=MODEL, defenses=[{"name": "soteria", "at": "active"}])


def test_weights_that_read_a_pruned_feature_get_no_gradient_from_a_clients_row(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "model": {**MODEL, "hidden": []},
        "training": {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 1, "l2": 0.0},
        "horizontal": {"rounds": 2, "local_steps": 1},
    }
    read = {}
    for name, defenses in (("soteria", [{"name": "soteria", "share": 0.8}]), ("none", [])):
        local = clients(deal(tmp_path / name, {"a": table(30, 1)}, defenses=defenses, **settings))
        local.run()
        sent = local.leader.transcript.select(Point.UPDATE)
        weights = [u.tensor("top.1.weight") for u in sent]
        assert weights[0].shape == (8, 10)
        read[name] = [int((w != 0).any(axis=0).sum()) for w in weights]
    assert all(1 <= n <= 2 for n in read["soteria"])
    assert all(n > 2 for n in read["none"])
