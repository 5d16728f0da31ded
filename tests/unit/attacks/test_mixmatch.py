"""MixMatch: what sharpening does, and rows that a few labels and many others determine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from nonempty import nonempty
from torch import nn

from vflens.attacks.helpers.networks.mixmatch import mixmatch, sharpened
from vflens.attacks.pmc import PassiveModelCompletion
from vflens.errors import KnowledgeError
from vflens.models.networks.generator import keyed
from vflens.plugins.findings import Joint
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

ROWS, GRANTED = 400, 6


def test_sharpening_divides_the_log_odds_by_the_temperature() -> None:
    p = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [0.4, 0.4, 0.2]])
    found = sharpened(torch.tensor(p)).numpy()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(found[0, 0] / found[0, 1]), np.log(0.7 / 0.2) / 0.8)
    np.testing.assert_allclose(found[1], p[1])
    assert found[2, 0] == found[2, 1]


def _clusters() -> tuple[Array, Array]:
    """Two classes in two columns: apart along the first, wide along the second."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, ROWS)
    y[:GRANTED] = [0, 1] * (GRANTED // 2)
    x = np.stack([0.3 + 0.4 * y + 0.05 * rng.normal(size=ROWS), rng.random(ROWS)], axis=1)
    return x, y


def _bottom() -> nn.Module:
    with keyed(np.random.default_rng(5)):
        return nn.Linear(2, 4, dtype=torch.float64)


def _view(x: Array, y: Array, own_model: Any = _bottom, **changes: Any) -> AdversaryView:
    rows = np.arange(ROWS, dtype=np.int32)
    granted = Released(
        "target", Exchange("run", Phase.DISCLOSE, 0, 0), Point.AUXILIARY, rows[:GRANTED],
        tensors={"labels": y[:GRANTED]},
    )  # fmt: skip
    settings: dict[str, Any] = {
        "party": "me",
        "target": "target",
        "rows": rows[GRANTED:],
        "n_classes": 2,
        "transcript": Messages([granted]),
        "own": {"features": x},
        "parties": [PartyInfo("me", Role.PASSIVE), PartyInfo("target", Role.ACTIVE)],
        "needs": PassiveModelCompletion.needs,
        "phases": PassiveModelCompletion.phases,
        "training": rows,
        "own_model": own_model,
    }
    return AdversaryView(**settings | changes)


def test_clusters_are_completed_from_a_few_labels() -> None:
    x, y = _clusters()
    attack = PassiveModelCompletion(fine_tune=True, fine_tune_steps=400)
    view = _view(x, y)
    found = attack.reconstruct(view, rng=np.random.default_rng(1))
    assert (found.values.argmax(axis=1) == y[GRANTED:]).mean() > 0.98
    np.testing.assert_allclose(found.values.sum(axis=1), 1)
    again = attack.reconstruct(_view(x, y), rng=np.random.default_rng(1))
    np.testing.assert_array_equal(again.values, found.values)


def test_the_bottom_model_learns_too_and_the_average_is_returned() -> None:
    x, y = (torch.tensor(part) for part in _clusters())
    model = nn.Sequential(_bottom(), nn.Linear(4, 2, dtype=torch.float64))
    before = [p.detach().clone() for p in model.parameters()]
    rng = np.random.default_rng(2)
    labelled = x[:GRANTED], y[:GRANTED]
    averaged = mixmatch(model, labelled, lambda n: x[rng.integers(ROWS, size=n)], steps=50, rng=rng)
    for start, last, mean in zip(nonempty(before), model.parameters(), averaged.parameters(), strict=True):
        assert len({tuple(p.flatten().tolist()) for p in (start, last, mean)}) == 3


def test_one_model_serves_all_rows_of_an_adversary() -> None:
    """It learns once for the views of two sets of rows, and gives each row what it gives in all of them."""
    (x, y), made = _clusters(), 0

    def counted() -> nn.Module:
        nonlocal made
        made += 1
        return _bottom()

    attack, rows = PassiveModelCompletion(fine_tune=True, fine_tune_steps=20), np.arange(ROWS, dtype=np.int32)
    joint: Joint = []
    parts = [
        attack.reconstruct(_view(x, y, counted, rows=part, joint=joint), rng=np.random.default_rng(1)).values
        for part in (rows[:150], rows[150:])
    ]
    assert made == 1
    whole = attack.reconstruct(_view(x, y, counted, rows=rows), rng=np.random.default_rng(1)).values
    assert made == 2
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-9)


def test_a_party_without_a_bottom_model_cannot_learn_it_on() -> None:
    x, y = _clusters()
    with pytest.raises(KnowledgeError, match=r"^party 'me' has no bottom model of its own: a passive party"):
        PassiveModelCompletion(fine_tune=True).reconstruct(_view(x, y, None), rng=np.random.default_rng(1))
    with pytest.raises(KnowledgeError, match="read 'own_features' without declaring it"):
        _view(x, y, needs=frozenset({Knowledge.GRADIENTS})).own_model()
