"""The advantage over a control and its interval: against SciPy, and by Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from vflens.numerics.measures.advantage import advantage, wilson


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 10), (10, 10), (1, 1), (450, 1000)])
def test_wilsons_interval_is_that_of_scipy(right: int, n: int) -> None:
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_always_right_is_one_no_better_is_zero_and_nothing_left_is_undefined() -> None:
    assert advantage(1.0, 0.4, 50).value == 1.0
    assert advantage(0.4, 0.4, 50).value == 0.0
    assert advantage(0.7, 0.4, 50).value == pytest.approx(0.5)
    assert advantage(0.1, 0.4, 50).value == pytest.approx(-0.5)
    assert math.isnan(advantage(1.0, 1.0, 50).value)


@pytest.mark.parametrize(("attack", "control"), [(0.7, 0.4), (0.3, 0.3), (0.95, 0.1), (0.6, 0.55)])
@pytest.mark.parametrize("together", [False, True], ids=["apart", "the same rows"])
def test_the_interval_covers_the_true_advantage(attack: float, control: float, together: bool) -> None:
    """Shares of 100 rows; where the same rows are easy for both, the interval is too wide, not too narrow."""
    rng, n, covered, draws = np.random.default_rng(3), 100, 0, 3000
    true = (attack - control) / (1 - control)
    for _ in range(draws):
        u = rng.random(n)
        v = u if together else rng.random(n)
        found = advantage(float((u < attack).mean()), float((v < control).mean()), n)
        covered += found.low <= true <= found.high
    assert covered / draws > 0.94
    assert together or covered / draws < 0.98
