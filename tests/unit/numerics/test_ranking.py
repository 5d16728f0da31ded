"""The area under the ROC curve against scikit-learn and against all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vflens.numerics.measures.ranking import auc

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("levels", [3, 10_000])
def test_agrees_with_scikit_learn_and_with_all_pairs(classes: int, levels: int) -> None:
    labels = RNG.integers(0, classes, 80)
    scores = RNG.integers(0, levels, (80, classes)) / levels + 0.3 * np.eye(classes)[labels]
    theirs = [roc_auc_score(labels == c, scores[:, c]) for c in range(classes)]
    assert auc(scores, labels) == pytest.approx(np.mean(theirs), abs=1e-12)
    pairs = []
    for c in range(classes):
        differences = scores[labels == c, c][:, None] - scores[labels != c, c][None]
        pairs.append(((differences > 0) + 0.5 * (differences == 0)).mean())
    assert auc(scores, labels) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_only_the_order_matters_and_minus_infinity_has_a_place() -> None:
    labels = np.array([0, 1, 1, 0])
    log_scores = np.array([[-np.inf, 0.0], [0.0, -np.inf], [-1.0, -0.5], [-0.5, -1.0]])
    assert auc(log_scores, labels) == auc(np.exp(log_scores), labels) == 0.25


def test_one_class_alone_ranks_nothing() -> None:
    assert math.isnan(auc(np.ones((3, 2)), np.zeros(3, int)))
    third_is_absent = auc(np.eye(3)[[0, 1, 0]], np.array([0, 1, 0]))
    assert third_is_absent == 1.0
