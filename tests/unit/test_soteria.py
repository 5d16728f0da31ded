"""Soteria: which features are pruned, what of the gradient passes, and where it acts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
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
