"""GIA: its slope, the objective that solutions have, and how it says when it stopped."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from vflens import attacks
from vflens.numerics.gradient_inversion import _Problem
from vflens.numerics.linear_system import LinearSystem
from vflens.registry import ATTACKS
from vflens.types import Array, RowStatus


def scored(seed: int, k: int, d: int, n: int) -> tuple[Array, Array, Array]:
    """A, b' and log-scores of a random model whose adversary owns no columns."""
    rng = np.random.default_rng(seed)
    weight, x = rng.normal(size=(k, d)), rng.random((n, d))
    log_c = log_softmax(x @ weight.T, axis=1)
    return np.diff(weight, axis=0), np.diff(log_c, axis=1), log_c


@pytest.mark.parametrize("with_scores", [True, False])
def test_gia_descends_along_the_true_slope(with_scores: bool) -> None:
    """Against the objective written out per row in probabilities, and its finite differences."""
    A, b, log_c = scored(0, 4, 5, 3)
    weight = np.vstack([np.zeros(5), np.cumsum(A, axis=0)])
    x = np.random.default_rng(1).random((3, 5))

    def objective(point: Array, row: int) -> float:
        if not with_scores:
            return float(((A @ point - b[row]) ** 2).sum())
        guess = softmax(weight @ point)
        return float((guess * np.log(guess / np.exp(log_c[row]))).sum())

    values, slope = _Problem(A, b.T, log_c.T if with_scores else None).value_and_slope(x.T)
    for row in range(3):
        assert values[row] == pytest.approx(objective(x[row], row), rel=1e-12)
        numeric = [(objective(x[row] + h, row) - objective(x[row] - h, row)) / 2e-6 for h in 1e-6 * np.eye(5)]
        np.testing.assert_allclose(slope[:, row], numeric, rtol=0, atol=1e-8)


@pytest.mark.parametrize("start", ["zero", "half", "random"])
@pytest.mark.parametrize("with_scores", [True, False])
def test_gia_reaches_the_objective_that_solutions_have(start: str, with_scores: bool) -> None:
    A, b, log_c = scored(3, 4, 8, 60)
    attack = ATTACKS.get("gia")(start=start, steps=2000)
    estimate = attack.solve_system(
        LinearSystem(A, b, False, log_c if with_scores else None), rng=np.random.default_rng(0)
    )
    assert (estimate.extras["objective"] < 1e-5).all()
    assert ((estimate.values >= 0) & (estimate.values <= 1)).all()
    assert (estimate.status == RowStatus.OK).all()


def test_gia_starts_agree_in_objective_not_in_estimate() -> None:
    A, b, _ = scored(4, 3, 9, 40)
    zero, half = (attacks.estimate("gia", A, b, start=s) for s in ("zero", "half"))
    np.testing.assert_allclose(zero.extras["objective"], half.extras["objective"], atol=1e-6)
    assert np.abs(zero.values - half.values).max() > 0.2


def test_gia_says_when_it_stopped_early() -> None:
    A, b, _ = scored(5, 4, 6, 30)
    short = attacks.estimate("gia", A, b, steps=3)
    assert (short.status == RowStatus.NOT_CONVERGED).mean() > 0.5
    assert (short.extras["objective"] > 1e-3).mean() > 0.5


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**-17, 2.0**17, 2.0**40])  # rounding scales with them
@pytest.mark.parametrize("steps", [3, 1000])
def test_gia_judges_squares_at_any_scale(steps: int, scale: float) -> None:
    A, b, _ = scored(5, 4, 6, 30)
    plain, scaled = (attacks.estimate("gia", s * A, s * b, steps=steps) for s in (1.0, scale))
    np.testing.assert_array_equal(scaled.values, plain.values)
    np.testing.assert_array_equal(scaled.status, plain.status)
    assert (scaled.status == RowStatus.OK).all() == (steps == 1000)
