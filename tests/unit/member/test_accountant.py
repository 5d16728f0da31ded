"""Costs of a row add up as the theorems say, and the release beyond the budget is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.dp_laplace import DPLaplace
from vflens.errors import StateError
from vflens.member.accountant import Accountant
from vflens.numerics import discrete_noise
from vflens.numerics.gaussian_privacy import gaussian_epsilon
from vflens.plugins.defense import Context
from vflens.types import Array, Claim, Exchange, Owner, Phase

DELTA = 1e-5
WIDTH = 1


def _of(*defenses: DPGaussian | DPLaplace) -> Accountant:
    return Accountant.of([d.claim({}) for d in defenses], DELTA, WIDTH)


def _convolved(level: float, releases: int) -> float:
    """ε at .99 δ of so many Gaussian releases: the privacy loss of one, N(a²/2, a²), on a grid, added up by
    FFT; δ(ε) = E max(0, 1 − e^(ε − loss)).
    """
    a, step, half = 2 / level, 1 / 512, 2**15
    losses = step * np.arange(-half, half)
    one = norm.cdf(losses + step / 2, a * a / 2, a) - norm.cdf(losses - step / 2, a * a / 2, a)
    mass = np.fft.irfft(np.fft.rfft(np.roll(one, half)) ** releases, 2 * half)
    mass = np.roll(mass, -half)

    def beyond(epsilon: float) -> float:
        return float(mass[losses > epsilon] @ -np.expm1(epsilon - losses[losses > epsilon])) - 0.99 * DELTA

    return float(brentq(beyond, 0, 50))


#: ε at .99e-5 by dp-accounting 0.6.0's PLD, the upper of its two bounds: printed by tests/oracle/pld.sh.
RECORDED = {
    (20.0, 1): 0.3409308,
    (20.0, 30): 2.208374,
    (50.0, 30): 0.8021619,
    (50.0, 100): 1.555955,
    (100.0, 100): 0.726025,
    (10.0, 100): 10.00185,
}


@pytest.mark.parametrize(("level", "releases"), RECORDED)
def test_gaussian_noise_adds_up_to_the_exact_epsilon(level: float, releases: int) -> None:
    """By a sum of privacy losses, by another accountant, and so by no formula of ours."""
    total = _of(DPGaussian(level=level)).total(releases)
    assert total == pytest.approx(_convolved(level, releases), rel=1e-3)
    assert total == pytest.approx(RECORDED[level, releases], rel=1e-5)


def test_pure_epsilon_adds_up_and_the_lesser_bound_counts() -> None:
    assert _of(DPLaplace(level=4.0)).total(10) == pytest.approx(5.0)
    both = _of(DPLaplace(level=4.0), DPGaussian(level=100.0))
    assert both.total(1) == _of(DPGaussian(level=100.0)).total(1)
    assert (
        Accountant.of([Claim(noise_std=1.0), Claim(epsilon=0.5, delta=1e-6)], DELTA, WIDTH).total(7) is None
    )


def test_the_release_beyond_the_budget_is_refused() -> None:
    laplace = _of(DPLaplace(level=4.0))
    laplace.check(10, 5.0, "a training row")
    words = (
        r"^release 11 of a training row makes ε = 5\.5 at δ = 1e-05, limits\.epsilon is 5: "
        r"train for fewer epochs, add noise, or raise it$"
    )
    with pytest.raises(StateError, match=words):
        laplace.check(11, 5.0, "a training row")
    Accountant(None, None, DELTA, WIDTH).check(10**6, 1e-9, "a training row")


def test_a_simulated_adversary_tells_neighbours_apart_no_better() -> None:
    """Two rows at distance 2C, the mean of 25 releases of dp_gaussian: its best test keeps to the ε that is
    stated.
    """
    defense, releases, n = DPGaussian(level=20.0), 25, 100_000
    epsilon = _of(defense).total(releases)
    assert epsilon is not None
    a, b = (_mean_of_releases(defense, row, releases, n) for row in (-1.0, 1.0))
    assert b.mean() - a.mean() == pytest.approx(2.0, abs=0.2)  # they can be told apart
    for threshold in (0.0, 2.0, 5.0, 8.0):
        facts, false = float((b > threshold).mean()), float((a > threshold).mean())
        assert facts <= math.exp(epsilon) * false + DELTA + 4 / math.sqrt(n)


def _mean_of_releases(defense: DPGaussian, row: float, releases: int, n: int) -> Array:
    """What an adversary makes of so many exchanges, for ``n`` rows that are all alike."""
    rows = np.arange(n, dtype=np.int32)
    total = np.zeros(n)
    for epoch in range(releases):
        exchange = Exchange("run", Phase.TRAIN, epoch, epoch)
        context = Context(
            Owner("party"), exchange, rows, {}, hook="on_embedding", position=0, secret=repr(row).encode()
        )
        total += defense.on_embedding(np.full((n, 1), row), context)[:, 0]
    return total / releases


def test_no_epsilon_is_stated_beyond_what_the_sampler_keeps() -> None:
    """The largest ε by its own formula: 1 % of δ for 2⁻⁴⁸ a number, (1 + e^ε) times."""
    wide = Accountant.of([DPGaussian(level=10.0).claim({})], DELTA, 64)
    stated = [n for n in range(1, 3000) if wide.total(n) is not None]
    assert stated == list(range(1, len(stated) + 1))  # once it is too much it stays so
    last, beyond = len(stated), len(stated) + 1
    epsilon = gaussian_epsilon(math.sqrt(beyond) * 2 / 10, DELTA)
    assert (wide.total(last) or 0) < epsilon < 1.01 * (wide.total(last) or 0)
    for releases, fits in ((last, True), (beyond, False)):
        error = releases * 64 * 2**-48 * (1 + math.exp(wide.total(last) or 0 if fits else epsilon))
        assert (error <= 0.01 * DELTA) == fits


def test_noise_too_small_for_the_sampler_has_no_epsilon_and_no_budget_covers_it() -> None:
    default = _of(DPGaussian())
    assert default.total(1) is None
    words = (
        r"^release 1 of a training row has no ε at δ = 1e-05, its noise is too small for the sampler, "
        r"and limits\.epsilon is 1000: add noise, train for fewer epochs, or leave limits\.epsilon out$"
    )
    with pytest.raises(StateError, match=words):
        default.check(1, 1000.0, "a training row")
    both = _of(DPGaussian(), DPLaplace(level=4.0))
    assert both.total(1) == pytest.approx(0.5)  # the other one's holds
    both.check(1, 0.6, "a training row")


def test_the_samplers_table_is_there_before_the_first_step() -> None:
    discrete_noise._half_normal.cache_clear()
    DPGaussian()
    assert discrete_noise._half_normal.cache_info().currsize == 1
