"""The agnostic attacks: gradients by finite differences, another solver, the closed forms, a federation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agnostic_mse import agnostic_half_star_mse, agnostic_ls_mse
from laboratory import federation
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from vflens.attacks.agnostic import Agnostic
from vflens.attacks.helpers.linear.agnostic import inside
from vflens.attacks.refined_agnostic import RefinedAgnostic
from vflens.numerics.linear_system import first_differences
from vflens.numerics.theory.agnostic import ReceivedScores, fit_classifier, objective, padded
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.recorded.vertical.view import scored_training_rows
from vflens.storage.journal import Messages, Reader
from vflens.types import Array, ColumnInfo, Exchange, PartyInfo, Phase, Point, Released, Role


def _scores(theta: Array, features: Array) -> Array:
    scores: Array = log_softmax(padded(features) @ theta.T, axis=1)
    return scores


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_gradient_is_that_of_the_objective(weight: float) -> None:
    rng = np.random.default_rng(0)
    x, y = padded(rng.random((20, 3))), np.eye(4)[rng.integers(0, 4, 20)]
    seen = ReceivedScores(rng.random((6, 3)), log_softmax(rng.normal(size=(6, 4)), axis=1), weight)
    theta, h = rng.normal(size=(4, 4)), 1e-6
    _, gradient = objective(theta, x, y, 0.02, seen)
    slopes = np.zeros_like(theta)
    for place in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[place] = h
        up, down = (objective(theta + s * step, x, y, 0.02, seen)[0] for s in (1, -1))
        slopes[place] = (up - down) / (2 * h)
    np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def test_without_scores_it_is_other_peoples_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.random((200, 3)), rng.integers(0, 3, 200)
    mine = _scores(fit_classifier(x, labels, 3, l2=0.01), x)
    theirs = LogisticRegression(C=1 / (2 * 0.01 * 200), tol=1e-10, max_iter=10_000).fit(x, labels)
    np.testing.assert_allclose(mine, theirs.predict_log_proba(x), atol=1e-5)


def test_received_scores_pull_the_classifier_towards_them() -> None:
    """Where the columns determine the scores, received ones determine the classifier."""
    rng = np.random.default_rng(0)
    x, theta = rng.random((300, 3)), 3 * rng.normal(size=(4, 4))
    log_c = _scores(theta, x)
    labels = rng.integers(0, 4, 300)  # labels that say nothing
    errors = [
        np.abs(
            _scores(fit_classifier(x, labels, 4, 0.0, ReceivedScores(x[:n], log_c[:n], a)), x) - log_c
        ).mean()
        for n, a in ((0, 0.0), (50, 1.0), (50, 1e4))
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def _view(attack: type[Attack], k: int, d: int, n: int = 3000) -> tuple[AdversaryView, Array, Array]:
    """A made-up federation: labels from both parties' columns, parameters disclosed, all scores received."""
    rng = np.random.default_rng(k + d)
    x, features = rng.random((n, d)), rng.random((n, 4))
    W, own, bias = rng.normal(size=(k, d)), 3 * rng.normal(size=(k, 4)), rng.normal(size=k)
    z = x @ W.T + features @ own.T + bias
    labels = np.array([rng.choice(k, p=p) for p in np.exp(log_softmax(z, axis=1))])
    rows, nothing = np.arange(n, dtype=np.int32), np.zeros(0, np.int32)
    exchanges = [Exchange("run", phase, 1, 0) for phase in (Phase.PREDICT, Phase.DISCLOSE)]
    transcript = [
        Released("coordinator", exchanges[0], Point.SCORES, rows, tensors={"scores": log_softmax(z, axis=1)}),
        Released("passive", exchanges[1], Point.PARAMETERS, nothing, tensors={"weight": W, "bias": bias}),
    ]
    columns = tuple(ColumnInfo(f"c{i}") for i in range(d))
    view = AdversaryView(
        party="active",
        target="passive",
        rows=rows,
        n_classes=k,
        transcript=Messages(transcript),
        own={"features": features, "labels": labels, "parameters": own},
        parties=[
            PartyInfo("active", Role.ACTIVE, n_classes=k),
            PartyInfo("passive", Role.PASSIVE, columns=columns),
        ],
        needs=attack.needs,
        phases=attack.phases,
        training=rows[:2000],
    )
    return view, x, W


@pytest.mark.parametrize(("k", "d"), [(5, 3), (3, 6), (4, 4)])
@pytest.mark.parametrize("attack", [Agnostic, RefinedAgnostic])
def test_unclipped_errors_are_the_closed_forms(attack: Any, k: int, d: int) -> None:
    """VAR (13) for d < k and (21) for d ≥ k, with K_cc of the very classifier that the attack trained.

    (13) is exact for any sample; (21) too, as the noise in range(A⁺) meets the error in the null space at 0.
    """
    view, x, W = _view(attack, k, d)
    values = attack(outside="keep").reconstruct(view, rng=np.random.default_rng(0)).values
    J = first_differences(k)
    A = J @ W
    # what the attack took for A x, recovered from the estimate's equations where they hold (d ≥ k), or anew
    rows, known = view.training_rows, np.asarray(view._own["features"])
    seen = None
    if attack is RefinedAgnostic:
        log_c = next(iter(view.received(Point.SCORES))).tensor("scores")[:100]
        seen = ReceivedScores(known[:100], log_c, 1.0)
    theta = fit_classifier(known[rows], np.asarray(view._own["labels"])[rows], k, 1e-4, seen)
    exact = next(view._select(Point.SCORES)).tensor("scores")
    off = (_scores(theta, known) - exact) @ J.T
    K_cc = off.T @ off / len(off)
    expected = (
        agnostic_ls_mse(A, K_cc)
        if d < k
        else agnostic_half_star_mse(A, (x - 0.5).T @ (x - 0.5) / len(x), K_cc)
    )
    np.testing.assert_allclose(np.mean((values - x) ** 2), expected, rtol=1e-8)


def test_three_ways_out_of_the_box() -> None:
    x = np.array([[-0.2, 0.3, 0.9], [0.1, 0.2, 0.3], [1.5, 2.0, 0.4]])
    np.testing.assert_array_equal(inside(x, "clip"), [[0, 0.3, 0.9], [0.1, 0.2, 0.3], [1, 1, 0.4]])
    np.testing.assert_array_equal(
        inside(x, "half_value"), [[0.5, 0.3, 0.9], [0.1, 0.2, 0.3], [0.5, 0.5, 0.4]]
    )
    np.testing.assert_array_equal(inside(x, "half_row"), [[0.5] * 3, [0.1, 0.2, 0.3], [0.5] * 3])
    np.testing.assert_array_equal(inside(x, "keep"), x)


def test_only_the_first_scores_that_arrived_count_and_saturated_ones_do_not() -> None:
    view, _, _ = _view(RefinedAgnostic, 3, 4, n=2500)
    rows, log_c = RefinedAgnostic(received=50)._first(view)
    np.testing.assert_array_equal(rows, np.arange(50))
    scores = next(iter(view.received(Point.SCORES)))
    spoilt = np.array(scores.tensor("scores"))
    spoilt[7, 1] = -np.inf
    view._select = Messages([replace(scores, tensors={"scores": spoilt})]).select
    rows, log_c = RefinedAgnostic(received=50)._first(view)
    np.testing.assert_array_equal(rows, [i for i in range(50) if i != 7])
    assert np.isfinite(log_c).all()


def test_training_rows_are_attacked_and_scored_as_a_set_of_their_own(tmp_path: Path) -> None:
    attacks = [{"name": "half_star"}, {"name": "agnostic"}, {"name": "refined_agnostic", "received": 10}]
    grants = [{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 5}]
    local = federation(tmp_path, attacks=attacks, disclose=grants)
    local.run()
    found = {
        (m["attack"], m["scored_set"], m["rows"])
        for m in local.passive["passive"].metrics._rows
        if m["metric"] == "mse"
    }
    agnostic = {
        (n, s, r)
        for n in ("agnostic", "refined_agnostic", "imputation")  # the guess that known rows allow
        for s, r in (("predict", 18), ("train", 67))
    }
    assert found == agnostic | {("half_star", "predict", 18)}
    run = local.active.run.federation
    scored = scored_training_rows(run, Reader(tmp_path / "active" / "transcript"), "passive")
    assert len(scored) == 67
    assert len(run.train) == 67 + 5
