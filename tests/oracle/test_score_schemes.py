"""The LR papers' defences of scores against brute force, Monte-Carlo and the attacks themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from disclosures import context_of, error_of, system
from scipy.special import log_softmax

from vflens.defenses.scheme_1 import Scheme1
from vflens.defenses.scheme_2 import Scheme2
from vflens.defenses.scheme_3 import Scheme3
from vflens.errors import ConfigError
from vflens.numerics.linear_system import first_differences
from vflens.plugins.defense import Defense
from vflens.types import Array, Owner


@pytest.mark.parametrize("sense", ["plus", "minus"])
@pytest.mark.parametrize(("k", "d"), [(2, 3), (4, 6), (6, 3)])
def test_no_direction_of_equal_power_costs_least_squares_more(k: int, d: int, sense: Any) -> None:
    """RVG Theorem 4 by trial: shift all logits by unit vectors, attack, compare with v₁."""
    W, x = system(k, d)
    v = context_of(Scheme1(sense=sense), W).state["direction"] * (1 if sense == "plus" else -1)
    np.testing.assert_allclose([np.linalg.norm(v), v.sum()], [1, 0], atol=1e-12)
    exact = log_softmax(x @ W.T, axis=1)
    for name in ("ls", "half_star"):
        best = error_of(name, W, W, x, exact + v) - error_of(name, W, W, x, exact)
        others = np.random.default_rng(2).normal(size=(200, k))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        gains = [error_of(name, W, W, x[:500], exact[:500] + u) for u in others]
        assert max(gains) <= best + error_of(name, W, W, x[:500], exact[:500]) + 1e-9
        J = first_differences(k)
        sigma = np.linalg.norm(np.linalg.pinv(J @ W) @ J, 2)
        np.testing.assert_allclose(best, sigma**2 / d, rtol=1e-6)


def test_the_sign_of_the_direction_is_settled_where_sizes_tie() -> None:
    """K = 2: v₁ is (1, −1)/√2 whatever the weights, so rounding must not choose its sign."""
    for seed in range(20):
        W, _ = system(2, 3, seed, n=10)
        np.testing.assert_allclose(
            context_of(Scheme1(), W).state["direction"], [0.5**0.5, -(0.5**0.5)], atol=1e-12
        )


def _apply(defense: Defense, log_c: Array, W: Array) -> Array:
    return defense.on_scores(log_c, context_of(defense, W))


@pytest.mark.parametrize("sense", ["plus", "minus"])
@pytest.mark.parametrize("alpha", [0.3, 4.0])
def test_scheme_1_is_its_definition(alpha: float, sense: Any) -> None:
    W, x = system(4, 3, n=50)
    z = x @ W.T
    v = context_of(Scheme1(), W).state["direction"] * (1 if sense == "plus" else -1)
    after = _apply(Scheme1(alpha=alpha, sense=sense), log_softmax(z, axis=1), W)
    for row, log_c in zip(z, after, strict=True):
        noise = v.copy()
        noise[row.argmax()] = v.max()
        noise *= np.sqrt(alpha) / np.linalg.norm(noise)
        np.testing.assert_allclose(log_c, log_softmax(row + noise), atol=1e-12)
    np.testing.assert_array_equal(after.argmax(axis=1), z.argmax(axis=1))


@pytest.mark.parametrize("sense", ["plus", "minus"])
@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_scheme_2_is_its_definition(margin: float, sense: Any) -> None:
    W, x = system(4, 3, n=50)
    z = x @ W.T
    v = context_of(Scheme2(), W).state["direction"] * (1 if sense == "plus" else -1)
    after = _apply(Scheme2(alpha=9.0, margin=margin, sense=sense), log_softmax(z, axis=1), W)
    moved = z + 3 * v
    moved[np.arange(len(z)), z.argmax(axis=1)] = moved.max(axis=1) + margin
    np.testing.assert_allclose(after, log_softmax(moved, axis=1), atol=1e-12)
    first = after.argmax(axis=1) == z.argmax(axis=1)
    if margin > 0:
        assert first.all()
    elif sense == "plus":  # exact ties: the first maximiser is often another class
        assert 0.2 < first.mean() < 0.9


def test_the_sense_matters_for_two_classes() -> None:
    """K = 2: one sign of scheme 1 leaves the scores of one whole class as they are (MATH: raised = all
    equal).
    """
    W, x = system(2, 3, n=200)
    W = W - np.outer([0, 1], W[1] - W[0]) / 2  # both classes occur
    exact = log_softmax((x - x.mean(axis=0)) @ W.T, axis=1)
    label = exact.argmax(axis=1)
    untouched = {}
    for sense in ("plus", "minus"):
        after = _apply(Scheme1(sense=sense), exact, W)
        same = np.abs(after - exact).max(axis=1) < 1e-12
        untouched[sense] = {int(c) for c in np.unique(label[same])}
        assert all(same[label == c].all() for c in untouched[sense])
    assert untouched == {"plus": {1}, "minus": {0}}


@pytest.mark.parametrize("scheme", [Scheme1(alpha=2.0), Scheme2(alpha=2.0), Scheme2(alpha=2.0, margin=0.5)])
def test_tied_labels_stay_tied(scheme: Defense) -> None:
    W, _ = system(4, 3, n=10)
    after = _apply(scheme, np.log([[0.3, 0.1, 0.3, 0.3]]), W)
    assert after[0, 0] == after[0, 2] == after[0, 3] == after.max()
    assert after[0, 1] <= after.max()


def test_scheme_3_draws_logits_together() -> None:
    z = np.array([[2.0, 0.0, -1.0]])
    after = Scheme3(alpha=0.25).on_scores(log_softmax(z, axis=1), context_of(Scheme3(), np.eye(3)))
    np.testing.assert_allclose(np.diff(after), 0.75 * np.diff(z), atol=1e-12)
    np.testing.assert_allclose(after, log_softmax(0.75 * z + 0.25), atol=1e-12)


def test_a_scheme_without_weights_or_without_a_direction_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="a scheme along v₁ at 'hub': it needs the passive parties' weights"
    ):
        Scheme1().fit(Owner("hub"), np.random.default_rng(0))
    with pytest.raises(ConfigError, match="the disclosed weights are the same for every class"):
        context_of(Scheme2(), np.ones((3, 2)))
