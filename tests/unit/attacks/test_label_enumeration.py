"""Names of clusters against the enumeration of all namings, and labels against those behind the gradients."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from vflens.attacks import label_enumeration
from vflens.attacks.helpers.networks.directions import directions
from vflens.attacks.label_enumeration import LabelEnumeration, named
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

ROWS, CLASSES, EPOCHS = 240, 6, 3
LABELS = np.random.default_rng(7).integers(0, CLASSES, ROWS)


def _wrong(attack: LabelEnumeration, *, top: Array | None = None, **model: Any) -> float:
    """The share of wrong labels, from gradients p − 1[y] of nearly equal beliefs, later of wrong ones; behind
    a ``top`` (k, w), in a split network with these settings.
    """
    rng, rows = np.random.default_rng(8), np.arange(ROWS, dtype=np.int32)
    released = []
    for epoch in range(EPOCHS):
        p = rng.dirichlet(np.full(CLASSES, 50.0 if epoch == 0 else 0.1), ROWS)
        g = p - np.eye(CLASSES)[LABELS if epoch == 0 else rng.permutation(LABELS)]
        g = g if top is None else g @ top
        at = Exchange("run", Phase.TRAIN, epoch, epoch)
        released.append(Released("t", at, Point.GRADIENT, rows, tensors={"gradient": g / ROWS}))
    settings: dict[str, Any] = {"party": "me", "target": "t", "n_classes": CLASSES, "own": {}}
    settings |= {"model": SplitNetwork(**model)} if model else {}
    view = AdversaryView(
        rows=rows,
        transcript=Messages(released),
        parties=[PartyInfo("me", Role.PASSIVE), PartyInfo("t", Role.ACTIVE)],
        needs=attack.needs,
        phases=attack.phases,
        training=rows,
        **settings,
    )
    found = attack.reconstruct(view, rng=np.random.default_rng(1)).values
    return float((found.argmax(axis=1) != LABELS).mean())


def test_first_gradients_of_logits_give_all_labels() -> None:
    assert _wrong(LabelEnumeration(epochs="first")) == 0.0
    assert _wrong(LabelEnumeration()) > 0.1  # later ones are made to say something else


def test_without_the_assignment_clusters_have_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_enumeration, "assigned", lambda costs: np.roll(np.arange(len(costs)), 1))
    assert _wrong(LabelEnumeration(epochs="first")) > 0.5
    assert Knowledge.KNOWN_LABELS not in LabelEnumeration.needs


def test_the_assignment_is_the_best_of_all_namings() -> None:
    """Over k! sums of cosines of each cluster and the simulated gradient of the class that it is named as."""
    for seed in range(20):
        centres = directions(np.random.default_rng(seed).normal(size=(5, 5)))
        simulated = directions(1 / 5 - np.eye(5))
        best = max(permutations(range(5)), key=lambda order: float((simulated * centres[[*order]]).sum()))
        np.testing.assert_array_equal(named(centres), centres[[*best]])


def test_an_unknown_top_model_names_no_class() -> None:
    """Rows of the top in another order, with labels renamed alike, give the same gradients."""
    rng, renamed = np.random.default_rng(2), np.roll(np.arange(CLASSES), 2)
    top, p = rng.normal(size=(CLASSES, 9)), rng.dirichlet(np.ones(CLASSES), ROWS)
    back = np.argsort(renamed)
    first = (p - np.eye(CLASSES)[LABELS]) @ top
    second = (p[:, back] - np.eye(CLASSES)[renamed[LABELS]]) @ top[back]
    np.testing.assert_allclose(first, second, atol=1e-12)
    with pytest.raises(
        KnowledgeError, match="gradients of width 9 behind a top model are not those of 6 logits"
    ):
        _wrong(LabelEnumeration(), top=top)


def test_only_without_parameters_of_the_top_are_as_many_gradients_as_classes_those_of_logits() -> None:
    network: dict[str, Any] = {"architecture": "mlp", "width": CLASSES}
    assert _wrong(LabelEnumeration(epochs="first"), **network, trainable_top=False) == 0.0
    with pytest.raises(KnowledgeError, match="of width 6 behind a top model are not those of 6 logits"):
        _wrong(LabelEnumeration(epochs="first"), **network)
