"""Decisions by Monte Carlo: noise neither breaks a kept threshold nor passes a broken one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from thinned import first

from vflens.experiments.outcome.decide import State, above, above_guess, better, worst
from vflens.numerics.measures.advantage import exact, normal_quantile

DRAWS = 3000
NOISE = 0.04  # 2.5 %, the discreteness of few rows, and three standard errors of 3000 draws


def _rates(draw: Callable[[np.random.Generator], State], draws: int = DRAWS) -> dict[State, float]:
    rng = np.random.default_rng(0)
    count = Counter(draw(rng) for _ in range(draws))
    return {state: count[state] / draws for state in State}


@pytest.mark.parametrize("tries", [1, 10])
@pytest.mark.parametrize(("share", "n"), [(0.1, 100), (0.3, 60), (0.5, 400), (0.9, 100)])
def test_an_interval_covers_the_share(share: float, n: int, tries: int) -> None:
    found = np.random.default_rng(1).binomial(n, share, 20_000) / n
    ends = {f: exact(f, n, tries) for f in set(found.tolist())}
    covered = np.mean([ends[f][0] <= share for f in found.tolist()])
    assert covered >= 1 - 0.025 / tries - 0.004  # four standard errors
    assert np.mean([share <= ends[f][1] for f in found.tolist()]) >= 1 - 0.025 / tries - 0.004
    assert normal_quantile(10) == pytest.approx(2.807, abs=1e-3)


@pytest.mark.parametrize("attacks", first([1, 20, 50], 2))
def test_noise_decides_no_threshold_that_is_met_exactly(attacks: int) -> None:
    """Attacks that all find exactly the share that is allowed: none is evidence of more, nor of less."""

    def draw(rng: np.random.Generator) -> State:
        found = rng.binomial(200, 0.1, attacks) / 200
        return worst(above(f, 200, 0.1, attacks) for f in found)

    rates = _rates(draw)
    assert rates[State.FOUND] < NOISE
    assert rates[State.NOT_FOUND] < NOISE


def test_twenty_attacks_without_a_correction_would_break_it() -> None:
    """The heart of the rule: without the correction for tries noise breaks a kept threshold often."""
    rng = np.random.default_rng(2)
    broken = [
        any(above(f, 200, 0.1) is State.FOUND for f in rng.binomial(200, 0.1, 20) / 200) for _ in range(500)
    ]
    assert np.mean(broken) > 0.25


@pytest.mark.parametrize(("share", "state"), [(0.2, State.FOUND), (0.05, State.NOT_FOUND)])
def test_many_rows_decide_and_few_do_not(share: float, state: State) -> None:
    def rates(n: int) -> dict[State, float]:
        return _rates(lambda rng: above(rng.binomial(n, share) / n, n, 0.1), 500)

    assert rates(1000)[state] > 0.99
    assert rates(15)[State.UNDECIDED] > 0.5


def test_no_row_found_in_ten_is_no_proof_of_few() -> None:
    assert above(0.0, 10, 0.1) is State.UNDECIDED
    assert above(0.0, 100, 0.1) is State.NOT_FOUND
    assert above(1.0, 2, 0.9) is State.UNDECIDED


@pytest.mark.parametrize("guess", [0.1, 0.4])
def test_noise_beats_no_guess(guess: float) -> None:
    """Attack and guess of the same share on the same rows, drawn apart: the least favourable case."""

    def draw(rng: np.random.Generator) -> State:
        return above_guess(rng.binomial(150, guess) / 150, rng.binomial(150, guess) / 150, 150)

    def draw_many(rng: np.random.Generator) -> State:
        found = rng.binomial(150, guess, (20, 2)) / 150
        return worst(above_guess(f, g, 150, tries=20) for f, g in found.tolist())

    assert _rates(draw_many, 500)[State.FOUND] < 2 * NOISE
    rates = _rates(draw)
    assert rates[State.FOUND] < NOISE
    assert rates[State.UNDECIDED] > 0.6


def test_a_guess_that_is_always_right_leaves_nothing() -> None:
    assert above_guess(1.0, 1.0, 20) is State.NOT_FOUND
    assert above_guess(0.9, 0.2, 100) is State.FOUND
    assert above_guess(0.2, 0.2, 100_000) is State.NOT_FOUND


def _judged(rng: np.random.Generator, scale: float, n: int, attacks: int = 1) -> State:
    """Attacks whose errors are ``scale`` of a blind guess's: squares of normal errors of four columns."""
    rows = scale * (rng.normal(size=(attacks, n, 4)) ** 2).mean(axis=2)
    halves = 1.96 * rows.std(axis=1, ddof=1) / np.sqrt(n)
    return worst(better(r.mean(), h, 1.0, n, attacks) for r, h in zip(rows, halves, strict=True))


def test_noise_beats_no_blind_error() -> None:
    assert _rates(lambda rng: _judged(rng, 1.0, 300))[State.FOUND] < NOISE
    assert _rates(lambda rng: _judged(rng, 1.0, 300, attacks=8), 1000)[State.FOUND] < 2 * NOISE
    assert _rates(lambda rng: _judged(rng, 0.95, 300))[State.NOT_FOUND] < NOISE  # more than hardly better


def test_a_better_attack_is_found_and_an_equal_one_is_held() -> None:
    assert _rates(lambda rng: _judged(rng, 0.7, 300), 300)[State.FOUND] > 0.99
    assert _rates(lambda rng: _judged(rng, 1.0, 20_000), 100)[State.NOT_FOUND] > 0.9


def test_fewer_than_fifty_rows_and_no_interval_decide_nothing() -> None:
    assert better(0.0, 0.001, 1.0, 49) is State.UNDECIDED
    assert better(0.0, None, 1.0, 1000) is State.UNDECIDED
    assert better(0.0, 0.001, 1.0, 50) is State.FOUND
    assert better(0.0, None, 0.0, 5) is State.NOT_FOUND  # a constant column


def test_the_worst_state_comes_first() -> None:
    assert worst([State.NOT_FOUND, State.UNDECIDED, State.FOUND]) is State.FOUND
    assert worst([State.NOT_FOUND, State.UNDECIDED]) is State.UNDECIDED
    assert worst([]) is State.NOT_FOUND
