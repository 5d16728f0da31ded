"""Noise on a grid against its law, in integers and by draws; an ε that is claimed against the exact
probabilities.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, laplace, norm

from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.dp_laplace import DPLaplace
from vflens.numerics import discrete_noise
from vflens.numerics.discrete_noise import (
    GAUSSIAN_ERROR,
    GAUSSIAN_STEP,
    LAPLACE_ERROR,
    LAPLACE_STEP,
    REACH,
    STEPS,
    Words,
    fresh_words,
)
from vflens.numerics.gaussian_privacy import gaussian_delta
from vflens.types import Array

DRAWS = 400_000
LAWS = {
    "laplace": (discrete_noise.laplace, laplace(scale=1 / LAPLACE_STEP)),
    "gaussian": (discrete_noise.gaussian, norm(scale=STEPS)),
}


def _draws(name: str, n: int = DRAWS) -> Array:
    return LAWS[name][0](fresh_words(np.random.Generator(np.random.Philox(key=[7, 0])), n))


def _fits(observed: Array, expected: Array) -> bool:
    """Chi-square test at level 1e-6."""
    return bool(((observed - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(expected) - 1))


@pytest.mark.parametrize("name", LAWS)
def test_the_floor_of_the_noise_has_the_law_of_a_floor(name: str) -> None:
    """P(⌊Z⌋ = n) = F(n + 1) − F(n), in 400 bins, and neither a wider nor a narrower law; in its last bits
    too.
    """
    floors, law = _draws(name) - 0.5, LAWS[name][1]
    assert (floors == np.rint(floors)).all()
    edges = np.unique(np.rint(law.ppf(np.linspace(0, 1, 401)[1:-1])))
    bins = np.bincount(np.searchsorted(edges, floors, side="right"), minlength=len(edges) + 1)
    for factor, fits in ((1, True), (1.04, False), (0.96, False)):
        cdf = np.concatenate([[0], law.cdf(edges / factor), [1]])
        assert _fits(bins, DRAWS * np.diff(cdf)) == fits
    assert _fits(np.bincount((floors % 64).astype(int)), np.full(64, DRAWS / 64))


def test_gaussian_noise_rises_with_its_word() -> None:
    """From the least value to the largest, and symmetric about 0."""
    words = np.array([0, 2**60, 2**62, 2**63 - 1, 2**63, 3 * 2**62 - 1, 15 * 2**60 - 1, 2**64 - 1], np.uint64)
    noise = discrete_noise.gaussian(lambda: words)
    assert (np.diff(noise) >= 0).all()
    np.testing.assert_array_equal(noise, -noise[::-1])
    assert noise[3] == -0.5
    assert noise[-1] == pytest.approx(STEPS * norm.isf(2.0**-65), abs=4)


def test_coins_are_tossed_until_one_shows_heads() -> None:
    """63 tails in a word are not the end of Laplace's tail: the next word goes on."""
    calls: Iterator[list[int]] = iter([[0, 0, 0], [0, 2**63, 2**60], [0, 2**63 + 2**62, 1], [2**59, 1, 1]])
    words: Words = lambda: np.array(next(calls), np.uint64)  # noqa: E731
    found = discrete_noise.laplace(words)
    np.testing.assert_array_equal(found, [-0.5 - STEPS * (63 + 63 + 3), 0.5 + STEPS * 63, -0.5 - STEPS * 2])


# -- the probabilities, exactly --------------------------------------------------------------------------


def _shares(table: Callable[[], discrete_noise._Cells], whole: int) -> list[int]:
    """Words of each cell."""
    thresholds = [0, *map(int, table().thresholds), whole]
    return [b - a for a, b in itertools.pairwise(thresholds)]


def _erf(x: Decimal) -> Decimal:
    """2/√π e^{−x²} Σ 2ⁱ x^{2i+1}/(2i + 1)!!, all of one sign."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    term = total = x
    for i in itertools.count(1):
        term *= 2 * x * x / (2 * i + 1)
        total += term
        if term < Decimal("1e-40"):
            return 2 / pi.sqrt() * (-x * x).exp() * total
    raise AssertionError


def test_the_gaussian_table_is_within_its_stated_error() -> None:
    """Each threshold is the nearest word to the error function's; all their errors together are the bound."""
    cells = discrete_noise._half_normal().thresholds
    assert len(cells) + 1 == REACH * STEPS
    with localcontext(prec=60):
        for n in [*range(1, len(cells), 997), 1, 2, 3, len(cells)]:
            exact = _erf(Decimal(n) / STEPS / Decimal(2).sqrt()) * 2**63
            assert abs(int(cells[n - 1]) - exact) < Decimal("0.51")
    assert (len(cells) + 1) * 2 * 0.51 * 2.0**-63 / 2 + 2 * norm.sf(REACH) < GAUSSIAN_ERROR


@pytest.mark.parametrize("apart", [1, 2, 3, 100, 4095, 4096, 4097, 9000])
def test_the_likelihood_ratio_of_laplace_noise_keeps_its_epsilon_everywhere(apart: int) -> None:
    """Max over n of P(n)/P(n + apart), in integers, is at most e^ε and nearly that."""
    share = _shares(discrete_noise._within_a_halving, 2**64)
    deep = 8

    def probability(n: int) -> int:
        v, u = divmod(n if n >= 0 else -n - 1, STEPS)
        return share[u] << (deep - v)

    with localcontext(prec=50):
        largest = (apart * Decimal(LAPLACE_STEP) * (1 + Decimal(LAPLACE_ERROR))).exp()
        ratios = [Decimal(probability(n)) / probability(n + apart) for n in range(-3 * STEPS, 3 * STEPS, 5)]
        assert max(*ratios, *(1 / r for r in ratios)) <= largest
        assert max(ratios) > largest ** Decimal("0.9999999")


def test_coins_and_table_make_one_law() -> None:
    """A halving's rest goes to the next: the step P(4096) = P(0)/2 has the size of any other."""
    share = _shares(discrete_noise._within_a_halving, 2**64)
    exact = [*map(Fraction, share), Fraction(share[0], 2)]
    steps = [a / b for a, b in itertools.pairwise(exact)]
    assert max(steps) / min(steps) - 1 < 2**-49


def test_the_delta_of_gaussian_noise_holds_for_the_table() -> None:
    """Σ max(0, P(n) − e^ε P(n + s)) over the table's own probabilities, at the shift that clipping allows."""
    defense = DPGaussian(level=20.0, delta=1e-5)
    epsilon = defense.claim({}).epsilon
    assert epsilon is not None
    half = np.array(_shares(discrete_noise._half_normal, 2**63), float) / 2**64
    density = np.concatenate([half[::-1], half])
    shift = int(2 * STEPS / defense.level)
    padded = np.concatenate([np.zeros(shift), density])
    moved = np.concatenate([density, np.zeros(shift)])
    delta = np.maximum(0, padded - math.exp(epsilon) * moved).sum()
    assert 0 < delta < 1e-5


@pytest.mark.parametrize("delta", [*np.logspace(-8, -0.1, 12), 0.999])
def test_the_theorems_delta_covers_the_exact_one_and_the_samplers_error(delta: float) -> None:
    """For every ε below 1, and the widest rows that a message can hold."""
    for epsilon in np.linspace(1e-3, 0.999, 60):
        level = math.sqrt(2 * math.log(1.25 / delta)) * 2 / epsilon
        claim = DPGaussian(level=level, delta=delta).claim({})
        assert claim.epsilon == pytest.approx(epsilon)
        spent = gaussian_delta(2 / level, epsilon) + 65536 * (1 + math.exp(epsilon)) * GAUSSIAN_ERROR
        assert spent < delta / 3
    assert GAUSSIAN_STEP * STEPS == 1


# -- sensitivity -----------------------------------------------------------------------------------------


def _longest_rows() -> Array:
    """Rows of norm C as float64 makes them, or more: few and many numbers, equal and unequal, both signs."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(200, 64)), np.ones((1, 64)), np.full((1, 64), -1 / 64), np.eye(64)[:1] * 1e9]
    return np.concatenate(rows) * np.pi


@pytest.mark.parametrize("level", [1e-9, 0.01, 0.3, 5.0, 3000.0])
def test_clipped_rows_on_the_grid_are_no_longer_than_the_claim_allows(level: float) -> None:
    """By exact integers: twice the longest row, in steps, costs at most ε, and hardly less where steps are
    short.
    """
    from vflens.defenses._clipping import clipped_to_grid

    rows = _longest_rows()
    step = LAPLACE_STEP * level * 0.7
    longest = max(sum(abs(int(v)) for v in row) for row in clipped_to_grid(rows, 0.7, 1, step))
    epsilon = DPLaplace(clip=0.7, level=level).claim({}).epsilon
    assert epsilon is not None
    assert 2 * longest * LAPLACE_STEP * (1 + LAPLACE_ERROR) <= epsilon
    assert 2 * (longest * (1 + 2.0**-31) + 64) * LAPLACE_STEP >= epsilon
    step = GAUSSIAN_STEP * level * 0.7
    squares = max(sum(int(v) ** 2 for v in row) for row in clipped_to_grid(rows, 0.7, 2, step))
    assert squares <= (STEPS / Fraction(level)) ** 2
