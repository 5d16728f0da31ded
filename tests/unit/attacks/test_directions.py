"""Attacks by the direction of gradients: classes that stand apart are found, named by one label of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vflens.attacks.gradient_clustering import GradientClustering
from vflens.attacks.helpers.networks.directions import beliefs, clusters, directions
from vflens.attacks.similarity import Similarity
from vflens.plugins.views.vertical import AdversaryView
from vflens.score.labels import named
from vflens.storage.journal import Messages
from vflens.types import Array, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

ROWS, CLASSES = 200, 5
LABELS = np.random.default_rng(4).permutation(np.arange(ROWS) % CLASSES)


def _one_hot_gradients(sharpness: float) -> Array:
    """P − 1[c = y] of logits without a trainable top, as a model knows its classes more or less."""
    logits = np.random.default_rng(5).normal(size=(ROWS, CLASSES)) + sharpness * np.eye(CLASSES)[LABELS]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found: Array = p - np.eye(CLASSES)[LABELS]
    return found


def _view(gradients: Array, granted: Array, **changes: Any) -> AdversaryView:
    everything = np.arange(ROWS, dtype=np.int32)

    def released(phase: Phase, point: Point, rows: Array, **tensors: Array) -> Released:
        return Released("target", Exchange("run", phase, 0, 0), point, rows.astype(np.int32), tensors=tensors)

    settings: dict[str, Any] = {
        "party": "me",
        "target": "target",
        "rows": everything,
        "n_classes": CLASSES,
        "transcript": Messages(
            [
                released(Phase.TRAIN, Point.GRADIENT, everything, gradient=gradients / ROWS),
                released(Phase.DISCLOSE, Point.AUXILIARY, granted, labels=LABELS[granted]),
            ]
        ),
        "own": {},
        "parties": [PartyInfo("me", Role.PASSIVE), PartyInfo("target", Role.ACTIVE)],
        "needs": frozenset(Knowledge),
        "phases": frozenset(Phase),
        "training": everything,
    }
    return AdversaryView(**settings | changes)


def _first_of_each() -> Array:
    return np.array([np.flatnonzero(c == LABELS)[0] for c in range(CLASSES)])


def _run(attack: Any, view: AdversaryView) -> Array:
    found: Array = attack.reconstruct(view, rng=np.random.default_rng(1)).values
    return found


@pytest.mark.parametrize("sharpness", [0.0, 2.0])
def test_gradients_of_logits_fall_into_one_cluster_per_class(sharpness: float) -> None:
    found = _run(GradientClustering(), _view(_one_hot_gradients(sharpness), _first_of_each()))
    pairs = {(a, b) for a, b in zip(LABELS, found.argmax(axis=1), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == CLASSES
    np.testing.assert_array_equal(named(found, LABELS).argmax(axis=1), LABELS)


@pytest.mark.parametrize("clustered", [False, True])
def test_one_label_of_each_class_names_them(clustered: bool) -> None:
    view = _view(_one_hot_gradients(3.0), _first_of_each())
    np.testing.assert_array_equal(_run(Similarity(clustered=clustered), view).argmax(axis=1), LABELS)


def test_centres_of_clusters_are_steadier_than_one_labelled_row() -> None:
    """Noise on the gradients moves a labelled row more than the mean of its cluster."""
    noisy = _one_hot_gradients(1.0) + 0.15 * np.random.default_rng(9).normal(size=(ROWS, CLASSES))
    view = _view(noisy, _first_of_each())
    right = [(_run(Similarity(clustered=c), view).argmax(axis=1) == LABELS).mean() for c in (False, True)]
    assert right[1] > right[0] + 0.02


def test_noise_that_is_drawn_each_epoch_averages_out() -> None:
    rng, rows = np.random.default_rng(9), np.arange(ROWS, dtype=np.int32)
    epochs = [_one_hot_gradients(1.0) + 0.5 * rng.normal(size=(ROWS, CLASSES)) for _ in range(20)]
    noisy = [
        Released(
            "target",
            Exchange("run", Phase.TRAIN, e, 2 * e + half),
            Point.GRADIENT,
            r,
            tensors={"gradient": part},
        )
        for e, g in enumerate(epochs)
        for half, r in enumerate((rows[::2], rows[1::2]))
        for part in [g[r] / len(r)]
    ]
    for recorded, least, most in ((noisy[-2:], 0.0, 0.75), (noisy, 0.95, 1.0)):
        view = _view(epochs[0], _first_of_each(), transcript=Messages(recorded))
        right = (named(_run(GradientClustering(), view), LABELS).argmax(axis=1) == LABELS).mean()
        assert least <= right <= most


def test_more_labelled_rows_count_as_far_as_they_are_asked_for() -> None:
    g = _one_hot_gradients(0.0)
    second = np.array([np.flatnonzero(c == LABELS)[1] for c in range(CLASSES)])
    g[_first_of_each()] = 0  # the first labelled row of each class has no direction
    view = _view(g, np.concatenate([_first_of_each(), second]))
    others = np.setdiff1d(np.arange(ROWS), _first_of_each())
    one, two = (_run(Similarity(labels=n), view).argmax(axis=1)[others] for n in (1, 2))
    assert (one == LABELS[others]).mean() < 0.5
    np.testing.assert_array_equal(two, LABELS[others])


def test_a_class_without_a_label_is_never_believed() -> None:
    found = _run(Similarity(), _view(_one_hot_gradients(3.0), _first_of_each()[1:]))
    assert (found[:, 0] == 0).all()
    known = LABELS > 0
    np.testing.assert_array_equal(found[known].argmax(axis=1), LABELS[known])


def test_prediction_rows_are_compared_by_the_party_s_own_embeddings() -> None:
    """They have no gradient. A shift that all embeddings share, as a passport's, changes nothing."""
    train, rows = np.arange(100, dtype=np.int32), np.arange(100, ROWS, dtype=np.int32)
    h = np.eye(CLASSES)[LABELS] + 0.1 * np.random.default_rng(2).normal(size=(ROWS, CLASSES))
    granted = _first_of_each()
    for shift in (0.0, 50.0):
        view = _view(np.zeros((ROWS, 3)), granted, own={"embeddings": h + shift}, training=train, rows=rows)
        np.testing.assert_array_equal(_run(Similarity(), view).argmax(axis=1), LABELS[100:])


def test_beliefs_are_shares_also_where_every_class_is_opposite() -> None:
    found = beliefs(np.array([[1.0, 0.0, -1.0], [-1.0, -1.0, -1.0]]))
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_centres_are_the_directions_of_their_members() -> None:
    rng = np.random.default_rng(7)
    sides = directions(rng.normal(size=(3, 6)))
    points = directions(sides[np.arange(90) % 3] + 0.1 * rng.normal(size=(90, 6)))
    found = clusters(points, 3, rng)
    nearest = (points @ found.T).argmax(axis=1)
    for c, centre in enumerate(found):
        mean = points[nearest == c].mean(axis=0)
        np.testing.assert_allclose(centre, mean / np.linalg.norm(mean), rtol=0, atol=1e-12)
    assert np.abs(np.sort((found @ sides.T).max(axis=1))).min() > 0.98


def test_equal_points_and_too_few_of_them_have_clusters() -> None:
    """Rows without a gradient, as sparse ones, have no direction."""
    for points in (np.zeros((4, 3)), np.ones((2, 3)) / np.sqrt(3)):
        assert np.isfinite(clusters(points, 5, np.random.default_rng(0))).all()


def test_clusters_are_named_for_the_most_rows() -> None:
    """By exhaustion: no other order of the columns has more rows right."""
    from itertools import permutations

    rng = np.random.default_rng(12)
    values, truth = rng.random((40, 4)), rng.integers(0, 4, 40)
    right = [(values[:, list(o)].argmax(axis=1) == truth).sum() for o in permutations(range(4))]
    assert (named(values, truth).argmax(axis=1) == truth).sum() == max(right)
