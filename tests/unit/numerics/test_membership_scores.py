"""Scores of membership against SciPy's normal law and scikit-learn's ROC curve, and on shadow models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve

from vflens.numerics.measures.ranking import auc, true_positive_rate
from vflens.numerics.membership import (
    loss_scores,
    online_scores,
    scaled_confidences,
    shadow_members,
    sureness,
)
from vflens.types import Array


def test_confidences_and_losses_are_those_of_the_probabilities() -> None:
    rng = np.random.default_rng(1)
    logits, labels = 3 * rng.normal(size=(2, 9, 4)), rng.integers(0, 4, 9)
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    of_label = np.take_along_axis(p, np.tile(labels, (2, 1))[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(
        scaled_confidences(logits, labels), np.log(of_label / (1 - of_label)), atol=1e-12
    )
    np.testing.assert_allclose(loss_scores(logits[0], labels), np.log(of_label[0]), atol=1e-12)
    saturated = scaled_confidences(np.array([[900.0, 0.0], [0.0, 900.0]]), np.array([0, 0]))
    assert saturated.tolist() == [900, -900]


def _drawn(models: int, rows: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(2)
    return rng.normal(size=rows), rng.normal(size=(models, rows)), shadow_members(models, rows, rng)


@pytest.mark.parametrize("pooled", [False, True])
def test_scores_are_log_ratios_of_fitted_normal_laws(pooled: bool) -> None:
    observed, shadows, members = _drawn(8, 5)
    sides = [[shadows[which[:, r], r] for r in range(5)] for which in (members, ~members)]
    mean = [[np.mean(s) for s in side] for side in sides]
    std = [[np.std(s, ddof=1) for s in side] for side in sides]
    if pooled:
        std = [[math.sqrt(np.mean(np.square(side)))] * 5 for side in std]  # as many models on each side
    laws = [norm(mean[i], std[i]) for i in range(2)]
    online = laws[0].logpdf(observed) - laws[1].logpdf(observed)
    np.testing.assert_allclose(online_scores(observed, shadows, members, pooled=pooled), online, atol=1e-10)


def test_each_row_is_in_half_of_the_shadow_models() -> None:
    _, _, members = _drawn(6, 50)
    assert (members.sum(axis=0) == 3).all()
    assert members.mean(axis=1).min() > 0.3
    assert members.mean(axis=1).max() < 0.7


@pytest.mark.parametrize("models", [0, 2, 5])
def test_too_few_shadow_models_are_refused(models: int) -> None:
    with pytest.raises(ValueError, match=f"{models} shadow models: give an even number from 4"):
        shadow_members(models, 3, np.random.default_rng(0))


def test_a_row_with_one_shadow_model_is_refused() -> None:
    members = np.array([[True, True], [True, False], [False, True], [False, False]])
    members[1, 0] = False
    with pytest.raises(ValueError, match="row 0 has 1 shadow model of one kind"):
        online_scores(np.zeros(2), np.zeros((4, 2)), members)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("levels", [5, 10**6])
def test_the_true_positive_rate_is_that_of_the_roc_curve(rate: float, levels: int) -> None:
    rng = np.random.default_rng(3)
    members = rng.random(300) < 0.4
    scores = rng.integers(0, levels, 300) / levels + 0.3 * members
    wrong, right, _ = roc_curve(members, scores, drop_intermediate=False)
    assert true_positive_rate(scores, members, rate) == pytest.approx(right[wrong <= rate + 1e-12].max())


def test_members_alone_have_no_rate() -> None:
    assert math.isnan(true_positive_rate(np.ones(3), np.ones(3, bool), 0.1))


def test_shadow_models_tell_members_of_an_overfitted_model_better_than_its_loss() -> None:
    """Rows with noisy labels: some are harder than others, which the loss alone takes for membership."""
    rng = np.random.default_rng(4)
    n = 160
    x, scale = rng.normal(size=(n, 30)), np.exp(rng.normal(size=n))
    x *= scale[:, None]
    y = (x[:, 0] + 2 * scale * rng.normal(size=n) > 0).astype(int)

    def confidences(of: Array) -> tuple[Array, Array]:
        model = LogisticRegression(C=0.5, max_iter=2000).fit(x[of], y[of])
        z = model.decision_function(x)
        logits = np.stack([np.zeros(n), z], axis=1)
        return scaled_confidences(logits, y), loss_scores(logits, y)

    members = shadow_members(32, n, rng)
    shadows = np.array([confidences(row)[0] for row in members])
    target = rng.random(n) < 0.5
    observed, losses = confidences(target)
    scores = {
        "loss": losses,
        "online": online_scores(observed, shadows, members),
    }
    found = {name: auc(np.stack([-s, s], axis=1), target.astype(int)) for name, s in scores.items()}
    assert found["loss"] > 0.55
    assert found["online"] > found["loss"] + 0.02
    assert true_positive_rate(scores["online"], target, 0.05) > true_positive_rate(losses, target, 0.05)


def test_sureness_is_the_largest_probability_or_minus_the_entropy() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]])
    log_p = np.log(np.maximum(p, np.finfo(float).tiny))
    np.testing.assert_allclose(np.exp(sureness(log_p)), [0.7, 0.4, 1.0])
    np.testing.assert_allclose(-sureness(log_p, entropy=True), stats.entropy(p, axis=1), atol=1e-12)
