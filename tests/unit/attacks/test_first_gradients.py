"""Labels by the first gradients: exact where they are those of codes, whatever the later ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vflens.attacks.first_gradients import FirstGradients
from vflens.attacks.similarity import Similarity
from vflens.errors import KnowledgeError
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

ROWS, TRAINED, CLASSES, WIDTH, EPOCHS, BATCH = 300, 200, 5, 12, 8, 50
LABELS = np.random.default_rng(4).integers(0, CLASSES, ROWS).astype(np.int64)
GRANTED = np.concatenate([np.flatnonzero(LABELS[:TRAINED] == c)[:3] for c in range(CLASSES)]).astype(np.int32)


def _messages(spread: float = 0.0) -> list[Released]:
    """Codes of small differences: belief less code in the first epoch, up to ``spread``; later what the model
    errs by.
    """
    rng = np.random.default_rng(5)
    codes = rng.dirichlet(np.full(CLASSES, 20.0), CLASSES)
    top = rng.normal(size=(CLASSES, WIDTH))
    released = []
    for epoch in range(EPOCHS):
        order = rng.permutation(TRAINED).astype(np.int32)
        for step, rows in enumerate(np.split(order, TRAINED // BATCH)):
            noise = rng.normal(size=(BATCH, CLASSES))
            error = 1 / CLASSES - codes[LABELS[rows]] + spread * noise if epoch == 0 else noise / 10
            at = Exchange("run", Phase.TRAIN, epoch, epoch * TRAINED // BATCH + step)
            released.append(
                Released("t", at, Point.GRADIENT, rows, tensors={"gradient": error @ top / BATCH})
            )
    return released


def _view(rows: Array, messages: list[Released], granted: Array = GRANTED) -> AdversaryView:
    """Own embeddings hold the class in one of their numbers, but for much noise in the others."""
    noise = np.random.default_rng(6).normal(0, 3, (ROWS, 40))
    embeddings = np.concatenate([3 * np.eye(CLASSES)[LABELS], noise], axis=1)
    disclosed = Exchange("run", Phase.DISCLOSE, 0, 0)
    facts = Released("t", disclosed, Point.AUXILIARY, granted, tensors={"labels": LABELS[granted]})
    settings: dict[str, Any] = {"party": "me", "target": "t", "n_classes": CLASSES}
    return AdversaryView(
        rows=rows,
        transcript=Messages([*messages, facts]),
        own={"embeddings": embeddings},
        parties=[PartyInfo("me", Role.PASSIVE), PartyInfo("t", Role.ACTIVE)],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
        training=np.arange(TRAINED, dtype=np.int32),
        **settings,
    )


def _wrong(attack: Any, rows: Array, messages: list[Released], granted: Array = GRANTED) -> float:
    found = attack.reconstruct(_view(rows, messages, granted), rng=np.random.default_rng(1)).values
    return float((found.argmax(axis=1) != LABELS[rows]).mean())


def test_the_first_gradient_of_a_row_is_that_of_its_code() -> None:
    rows, messages = np.arange(TRAINED, dtype=np.int32), _messages()
    assert _wrong(FirstGradients(), rows, messages) == 0.0
    assert _wrong(Similarity(labels=3), rows, messages) > 0.3  # it sums them over all epochs


def test_all_rows_place_the_centres_and_the_granted_ones_name_them() -> None:
    """One label a class, of rows that differ in more than their code: nearly as good as centres by all
    labels, which the granted rows themselves are not.
    """
    rows, messages, one = np.arange(TRAINED, dtype=np.int32), _messages(spread=0.015), GRANTED[1::3]
    sent = [m for m in messages if m.exchange.round == 0]
    order = np.argsort(np.concatenate([m.rows for m in sent]))
    g = np.concatenate([m.tensor("gradient") for m in sent])[order]
    g /= np.linalg.norm(g, axis=1, keepdims=True)

    def wrong(known: Array) -> float:
        sums = np.array([g[known][LABELS[known] == c].sum(axis=0) for c in range(CLASSES)])
        centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return float(((g @ centres.T).argmax(axis=1) != LABELS[rows]).mean())

    best, granted = wrong(rows), wrong(one)
    assert granted > best + 0.05
    assert _wrong(FirstGradients(), rows, messages, one) <= best + 0.02


def test_a_class_of_which_no_label_is_granted_has_the_belief_0() -> None:
    rows, some = np.arange(TRAINED, dtype=np.int32), GRANTED[LABELS[GRANTED] != 2]
    view = _view(rows, _messages(), some)
    found = FirstGradients().reconstruct(view, rng=np.random.default_rng(1)).values
    assert (found[:, 2] == 0).all()
    others = LABELS[rows] != 2
    assert (found.argmax(axis=1) == LABELS[rows])[others].all()


def test_named_training_rows_teach_a_head_more_than_the_granted_ones() -> None:
    """A head of 200 labels finds the five numbers among 45, and one of fifteen labels does not."""
    rows, messages = np.arange(TRAINED, ROWS, dtype=np.int32), _messages()
    later = [m for m in messages if m.exchange.round > 0]
    assert _wrong(FirstGradients(), rows, messages) < 0.25
    assert _wrong(FirstGradients(), rows, later) > 0.5  # labels by chance


def test_a_row_that_the_first_recorded_epoch_lacks_is_refused() -> None:
    rows, messages = np.arange(TRAINED, dtype=np.int32), _messages()
    with pytest.raises(KnowledgeError, match=r"the first recorded epoch has no gradient of \d+ rows"):
        _wrong(FirstGradients(), rows, messages[1:])
    with pytest.raises(KnowledgeError, match="gradient"):
        _wrong(FirstGradients(), rows, [])
