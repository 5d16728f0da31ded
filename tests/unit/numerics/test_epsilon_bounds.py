"""The bounds of ε from right guesses: against sums by hand, and against mechanisms that leak all they may."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from vflens.numerics.measures.epsilon import chance, least_epsilon, least_mu


def _by_hand(correct: int, guesses: int, coins: int, right: Fraction, delta: Fraction) -> float:
    """The theorem's right-hand side in fractions, term by term."""
    mass = [math.comb(guesses, w) * right**w * (1 - right) ** (guesses - w) for w in range(guesses + 1)]
    most = max(sum(mass[correct - i : correct], Fraction(0)) / i for i in range(1, correct + 1))
    return float(sum(mass[correct:]) + 2 * coins * delta * most)


@pytest.mark.parametrize("correct", [1, 7, 15, 20])
@pytest.mark.parametrize("odds", [1, 2, 5])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000)])
def test_the_chance_is_that_of_the_theorem(correct: int, odds: int, delta: Fraction) -> None:
    found = chance(correct, 20, 30, math.log(odds), float(delta))
    assert found == pytest.approx(_by_hand(correct, 20, 30, Fraction(odds, odds + 1), delta), rel=1e-9)


@pytest.mark.parametrize("leaked", [1, 2, 5, 20])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_a_mechanism_that_leaks_what_delta_allows_is_no_likelier_to_be_right(
    leaked: int, epsilon: float
) -> None:
    """With probability mδ/k it tells k of m coins: each coin with δ. Else it answers at random with e^ε."""
    guesses, delta, right = 40, 1e-3, 1 / (1 + math.exp(-epsilon))
    often = guesses * delta / leaked
    correct = np.arange(1, guesses + 1)
    some = binom.sf(correct - 1 - leaked, guesses - leaked, right)
    happens = (1 - often) * binom.sf(correct - 1, guesses, right) + often * some
    bounds = [chance(c, guesses, guesses, epsilon, delta) for c in correct.tolist()]
    assert (happens <= np.array(bounds) + 1e-12).all()


@pytest.mark.parametrize(("correct", "guesses"), [(60, 100), (88, 100), (100, 100), (900, 1500)])
def test_without_delta_the_bound_is_the_log_odds_of_clopper_and_pearson(correct: int, guesses: int) -> None:
    share = beta.ppf(0.05, correct, guesses - correct + 1)
    expected = max(0.0, math.log(share / (1 - share)))
    assert least_epsilon(correct, guesses, 2000, 0.0, 0.95) == pytest.approx(expected, abs=1e-6)
    assert least_epsilon(correct, guesses, 2000, 1e-5, 0.95) <= expected + 1e-6


def test_guesses_that_are_half_right_show_nothing() -> None:
    assert least_epsilon(50, 100, 100, 0.0, 0.95) == least_epsilon(0, 100, 100, 1e-5, 0.95) == 0
    assert least_mu(50, 100, 0.95) == least_mu(0, 100, 0.95) == 0


def test_the_chance_grows_with_epsilon_so_that_one_epsilon_parts_refuted_from_possible() -> None:
    for correct, guesses, delta in ((90, 100, 1e-5), (30, 30, 1e-4), (700, 1000, 1e-6)):
        grown = [chance(correct, guesses, 1500, e, delta) for e in np.linspace(0, 6, 200)]
        refuted = [c < 0.05 for c in grown]
        assert refuted == sorted(refuted, reverse=True)


@pytest.mark.parametrize(("correct", "guesses"), [(700, 1000), (999, 1000), (1000, 1000)])
def test_mu_is_where_so_many_right_guesses_have_five_per_cent(correct: int, guesses: int) -> None:
    found = brentq(lambda mu: binom.sf(correct - 1, guesses, norm.cdf(mu / 2)) - 0.05, 0, 12)
    assert least_mu(correct, guesses, 0.95) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_no_threshold_guesses_a_gaussian_coin_more_often(mu: float) -> None:
    thresholds = np.linspace(-3, mu + 3, 4001)
    shares = (norm.sf(thresholds, mu) + norm.cdf(thresholds)) / 2
    assert shares.max() == pytest.approx(norm.cdf(mu / 2), abs=1e-5)
