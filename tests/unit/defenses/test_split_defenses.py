"""The defences of embeddings, gradients and labels, each against its definition."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.dp_laplace import DPLaplace
from vflens.defenses.label_dp import LabelDP
from vflens.defenses.marvell import Marvell, best_variances, sum_kl
from vflens.defenses.max_norm import MaxNorm
from vflens.defenses.sparsification import Sparsification
from vflens.plugins.defense import Context
from vflens.types import Array, Exchange, Owner, Phase

RNG = np.random.default_rng(0)


def _context(rows: int, labels: Array | None = None, step: int = 0) -> Context:
    owner, exchange = Owner("party", labels=labels, n_classes=2), Exchange("run", Phase.TRAIN, 0, step)
    return Context(
        owner, exchange, np.arange(rows, dtype=np.int32), {}, hook="on_gradient", position=0, secret=b"secret"
    )


@pytest.mark.parametrize(("kind", "order"), [(DPGaussian, 2), (DPLaplace, 1)])
def test_rows_are_clipped_before_the_noise(kind: Any, order: int) -> None:
    rows = RNG.normal(size=(50, 7)) * RNG.uniform(0, 3, (50, 1))
    rows[0] = 0
    defense = kind(clip=2.0, level=1e-9)
    norms, after = (
        np.linalg.norm(r, ord=order, axis=1) for r in (rows, defense.on_embedding(rows, _context(50)))
    )
    np.testing.assert_allclose(after, np.minimum(norms, 2.0), atol=1e-6)


@pytest.mark.parametrize("kind", [DPGaussian, DPLaplace])
@pytest.mark.parametrize("n", [1, 4, 512])
def test_a_level_means_the_same_at_every_batch_size(kind: Any, n: int) -> None:
    """A row's own gradient of length 5 is cut to 2, and has the same noise, in every batch."""
    alone = np.tile([3.0, 4.0], (n, 1))
    quiet = kind(clip=2.0, level=1e-9).on_gradient(alone / n, _context(n)) * n
    np.testing.assert_allclose(quiet, alone * 2 / np.linalg.norm(alone[0], 2 if kind is DPGaussian else 1))
    defense = kind(clip=2.0, level=0.5)
    noisy = defense.on_gradient(np.zeros((n, 2000)), _context(n)) * n
    assert noisy.std() == pytest.approx(defense.claim({}).noise_std, rel=6 / math.sqrt(n * 2000))


def test_laplace_noise_is_laplace_and_its_epsilon_bounds_the_likelihood_ratio() -> None:
    """Neighbours 2C apart in L1: every released value is at most e^ε as likely under the other."""
    defense = DPLaplace(clip=1.0, level=0.5)
    noise = defense.on_embedding(np.zeros((20000, 2)), _context(20000)).ravel()
    assert abs(np.abs(noise).mean() / 0.5 - 1) < 5 / math.sqrt(len(noise))  # E|Laplace(b)| = b
    epsilon = defense.claim({}).epsilon
    assert epsilon is not None
    ends = np.array([[1.0, 0.0], [-1.0, 0.0]])
    released = RNG.normal(size=(1000, 1, 2)) * 3
    log_ratio = (np.abs(released - ends[1]).sum(-1) - np.abs(released - ends[0]).sum(-1)) / 0.5
    assert log_ratio.max() <= epsilon + 1e-12
    assert log_ratio.max() > 0.99 * epsilon


def test_gaussian_claims_epsilon_only_where_the_bound_covers_it() -> None:
    assert DPGaussian(level=0.1).claim({}).epsilon is None
    claim = DPGaussian(level=20.0, delta=1e-5).claim({})
    assert claim.epsilon is not None
    assert pytest.approx(math.sqrt(2 * math.log(1.25e5)) * 2 / claim.epsilon) == 20.0
    # The exact δ of Gaussian noise (Balle and Wang, 2018) at this ε is below the claimed one.
    from scipy.stats import norm

    shift = 2 / 20.0
    delta = norm.cdf(shift / 2 - claim.epsilon / shift) - math.exp(claim.epsilon) * norm.cdf(
        -shift / 2 - claim.epsilon / shift
    )
    assert 0 < delta < 1e-5


def test_sparsification_keeps_the_largest_entries_exactly() -> None:
    rows = RNG.normal(size=(30, 10))
    after = Sparsification(kept=0.25).on_embedding(rows, _context(30))
    for before, sparse in zip(rows, after, strict=True):
        kept = sorted(range(10), key=lambda i: -abs(before[i]))[:3]
        assert {i for i in range(10) if sparse[i] != 0} == set(kept)
        assert all(sparse[i] == before[i] for i in kept)
    np.testing.assert_array_equal(Sparsification(kept=1.0).on_gradient(rows, _context(30)), rows)
    np.testing.assert_array_equal(
        Sparsification(kept=0.2).on_gradient(np.ones((1, 5)), _context(1)), [[1, 0, 0, 0, 0]]
    )


def test_max_norm_makes_every_expected_square_the_largest() -> None:
    g = RNG.normal(size=(6, 4)) * np.array([[0.1], [0.5], [1], [2], [3], [0]])
    draws = np.array([MaxNorm().on_gradient(g, _context(6, step=s)) for s in range(4000)])
    mean = (draws**2).sum(axis=2).mean(axis=0)
    np.testing.assert_allclose(mean[:5], (g**2).sum(1).max(), rtol=0.12)
    assert mean[5] == 0
    cosine = (
        np.abs((draws[:, :5] * g[:5]).sum(2))
        / np.linalg.norm(draws[:, :5], axis=2)
        / np.linalg.norm(g[:5], axis=1)
    )
    np.testing.assert_allclose(cosine, 1.0)  # stretched, never turned


def test_label_dp_keeps_labels_as_often_as_it_says_and_never_more() -> None:
    n, k, epsilon = 60000, 4, 1.2
    y = np.eye(k)[RNG.integers(0, k, n)]
    after = LabelDP(epsilon=epsilon).on_labels(y, _context(n))
    kept = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    confusion = y.T @ after / y.sum(0)[:, None]
    expected = np.full((k, k), (1 - kept) / (k - 1))
    np.fill_diagonal(expected, kept)
    np.testing.assert_allclose(confusion, expected, atol=5 * math.sqrt(0.25 / (n / k)))
    assert kept / expected[0, 1] == pytest.approx(math.exp(epsilon))  # the likelihood ratio is e^ε
    assert set(after.sum(1)) == {1.0}


@pytest.mark.parametrize("epsilon", [0.1, 5.0, 30.0, 40.0, 700.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_label_dp_keeps_its_epsilon_in_whole_words(epsilon: float, k: int) -> None:
    """So many of 2⁶⁴ words keep the label, the others are shared: the ratio is at most e^ε, never ∞."""
    kept = LabelDP(epsilon=epsilon)._kept(k)
    with localcontext(prec=400):
        ratio = Decimal(kept) * (k - 1) / (2**64 - kept)
        assert 0 < ratio <= Decimal(epsilon).exp()
        assert epsilon > 30 or ratio > Decimal(epsilon).exp() * Decimal("0.999999")


# -- Marvell -----------------------------------------------------------------------------------------

CASES = [
    (0.1, 0.1, 0.5, 8, 4.0),
    (0.5, 0.01, 0.1, 64, 4.0),
    (1e-3, 2.0, 0.05, 16, 1.0),
    (3.0, 0.2, 0.9, 30, 0.5),
]


@pytest.mark.parametrize(("u", "v", "p", "d", "power"), CASES)
def test_marvell_spends_its_power_as_well_as_any(u: float, v: float, p: float, d: int, power: float) -> None:
    price = np.array([1 - p, (1 - p) * (d - 1), p, p * (d - 1)])
    best = best_variances(u, v, p, d, power)
    assert (best >= 0).all()
    assert price @ best <= power * (1 + 1e-9)
    rng = np.random.default_rng(1)
    others = [sum_kl(rng.dirichlet(np.full(4, 0.5)) * power / price, u, v, d) for _ in range(20000)]
    assert sum_kl(best, u, v, d) <= min(others) * (1 + 1e-6)


def test_sum_kl_is_the_divergence_of_two_gaussians() -> None:
    d, u, v = 3, 0.3, 0.7
    x = np.array([0.5, 0.2, 0.9, 0.1])
    delta = np.array([0.6, 0.0, 0.8])
    along = np.outer(delta, delta)
    zero = u * np.eye(d) + (x[0] - x[1]) * along + x[1] * np.eye(d)
    one = v * np.eye(d) + (x[2] - x[3]) * along + x[3] * np.eye(d)
    p, q = multivariate_normal(np.zeros(d), zero), multivariate_normal(delta, one)
    draws = [m.rvs(400000, random_state=1) for m in (p, q)]
    estimate = (p.logpdf(draws[0]) - q.logpdf(draws[0])).mean() + (
        q.logpdf(draws[1]) - p.logpdf(draws[1])
    ).mean()
    assert estimate == pytest.approx(sum_kl(x, u, v, d), rel=0.02)


def test_marvell_noise_has_the_covariance_it_chose_and_hides_the_label() -> None:
    n, d = 4000, 5
    labels = (np.arange(n) % 4 == 0).astype(np.int64)
    delta = np.array([1.0, 0, 0, 0, 0])
    g = 0.3 * RNG.normal(size=(n, d)) + labels[:, None] * delta
    context = _context(n, labels)
    noise = Marvell(power=4.0).on_gradient(g, context) - g
    ones = labels == 1
    measured = g[ones].mean(0) - g[~ones].mean(0)
    size = measured @ measured
    u, v = g[~ones].var(0).mean(), g[ones].var(0).mean()
    best = size * best_variances(u / size, v / size, ones.mean(), d, 4.0)
    for side, (first, second) in ((~ones, best[:2]), (ones, best[2:])):
        expected = (first - second) * np.outer(measured, measured) / size + second * np.eye(d)
        np.testing.assert_allclose(np.cov(noise[side].T), expected, atol=8 * first / math.sqrt(side.sum()))
    # The best linear test (FPR + FNR)/2 ≥ ½ − √sumKL/4; without noise it hardly errs.
    bound = 0.5 - math.sqrt(sum_kl(best / size, u / size, v / size, d)) / 4
    errors = []
    for released in (g, g + noise):
        score = released @ measured
        tests = np.quantile(score, np.linspace(0, 1, 200))
        errors.append(min(((score[~ones] > t).mean() + (score[ones] <= t).mean()) / 2 for t in tests))
    assert errors[0] < 0.08
    assert errors[1] >= bound - 0.03


def test_marvell_leaves_a_batch_of_one_side_alone() -> None:
    g = RNG.normal(size=(5, 3))
    for labels in (np.zeros(5, np.int64), np.ones(5, np.int64)):
        assert Marvell().on_gradient(g, _context(5, labels)) is g


def _test_error(released: Array, ones: Array) -> float:
    """(FPR + FNR)/2 of the likelihood ratio of two Gaussians, fitted to every second row, on the others."""
    fitted, tried = slice(0, None, 2), slice(1, None, 2)
    sides = [released[fitted][ones[fitted] == side] for side in (0, 1)]
    laws = [multivariate_normal(s.mean(axis=0), np.cov(s.T)) for s in sides]
    score = laws[1].logpdf(released[tried]) - laws[0].logpdf(released[tried])
    one = ones[tried] == 1
    tests = np.quantile(score, np.linspace(0, 1, 200))
    return float(min(((score[~one] > t).mean() + (score[one] <= t).mean()) / 2 for t in tests))


@pytest.mark.parametrize("power", [1.0, 4.0])
def test_what_marvell_claims_holds_and_noise_that_is_worse_spent_fails_it(power: float) -> None:
    """The broken variant spreads the same power over all directions."""
    n, d = 20_000, 8
    rng = np.random.default_rng(3)
    labels = (np.arange(n) % 5 < 2).astype(np.int64)
    delta = rng.normal(size=d)
    g = labels[:, None] * delta + 0.1 * np.linalg.norm(delta) * rng.normal(size=(n, d))
    marvell = Marvell(power=power)
    bound = marvell.claim({}).test_error
    assert bound is not None
    assert bound >= 0.25
    slack = 5 * 0.5 / math.sqrt(n / 2)  # of a share measured on half of the rows
    assert _test_error(marvell.on_gradient(g, _context(n, labels)), labels) > bound - slack
    spread = g + math.sqrt(power / d) * np.linalg.norm(delta) * rng.normal(size=(n, d))
    assert _test_error(spread, labels) < bound - slack


def test_marvell_claims_nothing_where_its_power_is_too_weak() -> None:
    assert Marvell(power=0.1).claim({}).test_error == 0
