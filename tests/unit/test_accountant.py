"""Costs of a row add up as the theorems say, and the release beyond the budget is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from defenses.dp_gaussian import DPGaussian
from defenses.dp_laplace import DPLaplace
from vfl.accountant import Accountant
from vfl.errors import StateError
from vfl.types import Claim

DELTA = 1e-5


def _of(*defenses: DPGaussian | DPLaplace) -> Accountant:
    return Accountant.of([d.claim({}) for d in defenses], DELTA)


def _exact(level: float, releases: int) -> float:
    """ε of so many Gaussian releases of one row (Balle and Wang, 2018, theorem 8): one release of √T times the distance."""
    a = 2 / level * math.sqrt(releases)

    def beyond(epsilon: float) -> float:
        return float(
            norm.cdf(a / 2 - epsilon / a) - math.exp(epsilon) * norm.cdf(-a / 2 - epsilon / a) - DELTA
        )

    return float(brentq(beyond, 0, 50))


@pytest.mark.parametrize("releases", [1, 10, 100])
def test_gaussian_noise_adds_up_to_no_less_than_the_exact_epsilon(releases: int) -> None:
    total = _of(DPGaussian(level=20.0)).total(releases)
    assert total is not None
    assert _exact(20.0, releases) <= total <= 1.5 * _exact(20.0, releases)


def test_pure_epsilon_adds_up_and_the_lesser_bound_counts() -> None:
    assert _of(DPLaplace(level=4.0)).total(10) == pytest.approx(5.0)
    both = _of(DPLaplace(level=4.0), DPGaussian(level=100.0))
    assert both.total(1) == _of(DPGaussian(level=100.0)).total(1)
    assert Accountant.of([Claim(noise_std=1.0), Claim(epsilon=0.5, delta=1e-6)], DELTA).total(7) is None


def test_the_release_beyond_the_budget_is_refused() -> None:
    laplace = _of(DPLaplace(level=4.0))
    laplace.check(10, 5.0, "a training row")
    words = r"^release 11 of a training row makes ε = 5\.5 at δ = 1e-05, limits\.epsilon is 5: train for fewer epochs, add noise, or raise it$"
    with pytest.raises(StateError, match=words):
        laplace.check(11, 5.0, "a training row")
    Accountant(None, None, DELTA).check(10**6, 1e-9, "a training row")


def test_a_simulated_adversary_tells_neighbours_apart_no_better() -> None:
    """Two rows at distance 2C, the mean of 25 releases: its best test keeps to the ε that is stated."""
    level, releases, n = 20.0, 25, 200_000
    epsilon = _of(DPGaussian(level=level)).total(releases)
    assert epsilon is not None
    rng = np.random.default_rng(0)
    a, b = (rng.normal(mean, level / math.sqrt(releases), n) for mean in (-1.0, 1.0))
    for threshold in (0.0, 2.0, 5.0, 8.0):
        told, false = float((b > threshold).mean()), float((a > threshold).mean())
        assert told <= math.exp(epsilon) * false + DELTA + 4 / math.sqrt(n)
