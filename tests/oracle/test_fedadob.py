"""CAP and FedAdOb's theorems against its tables, Monte Carlo and convex programs; its errata."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pytest
from datafiles import WITHOUT
from scipy.optimize import brentq

from vflens.datasets._resolve import dataset
from vflens.numerics.theory.fedadob import (
    Cap,
    DefenseStrength,
    against_best,
    label_error_bound,
    log_recovery_probability,
    vacuous_error,
)
from vflens.types import Array

cp: Any = cvxpy

#: FedAdOb, Table V: N, accuracy and error of CAFE on AlexNet-CIFAR10, σ = 1.
TABLE_V = [
    (1, 0.8798, 0.0589),
    (2, 0.8771, 0.0818),
    (5, 0.8758, 0.1203),
    (10, 0.8764, 0.1204),
    (50, 0.8761, 0.1205),
    (100, 0.8759, 0.1205),
    (200, 0.8739, 0.1205),
]


def _table_v(least: float = 0, blind: float = 0.0625) -> Cap:
    rows = [
        DefenseStrength(N, accuracy, error, blind, attack="cafe")
        for N, accuracy, error in TABLE_V
        if least <= N
    ]
    return Cap("largest_mean", tuple(rows))


# -- CAP -----------------------------------------------------------------------------------------------


def test_cap_depends_on_its_grid_and_carries_it() -> None:
    """All seven N of Table V give .093; Table IV's .105 needs N ≥ 5."""
    whole, late = _table_v(), _table_v(least=5)
    assert whole.value == pytest.approx(0.0930, abs=5e-5)
    assert late.value == pytest.approx(0.1055, abs=5e-5)
    assert whole.grid == (1, 2, 5, 10, 50, 100, 200)
    assert str(late) == "0.105 over largest_mean = 5, 10, 50, 100, 200"


def test_an_adversary_who_may_guess_blindly_gains_from_every_error_above_the_blind_one() -> None:
    """Only N = 1 lies below a blind guess of .0625: the paper's CAP measures an optimiser that failed."""
    cap = _table_v()
    expected = (0.8798 * 0.0589 + 0.0625 * sum(accuracy for _, accuracy, _ in TABLE_V[1:])) / 7
    assert cap.or_blind == pytest.approx(expected, rel=1e-12)
    assert cap.relative == pytest.approx(0.09298 / 0.05478, rel=2e-3)
    assert _table_v(blind=0.0).relative == math.inf


def test_against_the_best_attack_each_strength_has_its_least_error() -> None:
    def cap(attack: str, *errors: float) -> Cap:
        rows = zip((1.0, 2.0, 3.0), errors, strict=True)
        return Cap("level", tuple(DefenseStrength(s, 0.5, error, 1.0, attack=attack) for s, error in rows))

    best = against_best([cap("paper", 0.3, 0.2, 0.4), cap("ours", 0.1, 0.6, math.nan)])
    assert [(s.attack, s.error) for s in best.settings] == [("ours", 0.1), ("paper", 0.2), ("paper", 0.4)]
    assert best.value == pytest.approx(0.5 * 0.7 / 3)


@pytest.mark.parametrize("other", [_table_v(least=5), Cap("sigma", _table_v().settings)])
def test_caps_over_other_grids_are_not_joined(other: Cap) -> None:
    with pytest.raises(ValueError, match="same strengths"):
        against_best([_table_v(), other])


def test_cap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="give at least one"):
        Cap("level", ())
    with pytest.raises(ValueError, match="at least one"):
        against_best([])


# -- Theorem 1 -----------------------------------------------------------------------------------------


def test_numbers_that_share_a_mean_count_once() -> None:
    """Two channels of four numbers, N = 1, σ = .01, ε = .3: the printed bound is 260 times too small."""
    rng = np.random.default_rng(0)
    means = rng.uniform(-1, 0, (100_000, 2, 1))
    key = means + 0.01 * rng.normal(size=(100_000, 2, 4))
    guess = np.full((2, 4), -0.5)  # at the middle no part of the ball is outside
    met = float((((key - guess) ** 2).sum(axis=(1, 2)) <= 0.3**2).mean())
    bound = math.exp(log_recovery_probability(0.3, 1.0, channels=2, entries=4))
    assert met == pytest.approx(0.070, abs=0.003)
    assert bound == pytest.approx(math.pi * 0.15**2, rel=1e-12)
    assert met <= bound + 5 * math.sqrt(bound / len(key))
    printed = math.exp(log_recovery_probability(0.3, 1.0, channels=8))
    assert printed == pytest.approx(2.7e-4, abs=5e-6)
    assert met > 200 * printed


@pytest.mark.parametrize(("sigma", "N"), [(0.0, 1.0), (0.3, 2.0)])
def test_no_drawn_guess_meets_the_key_more_often_than_the_bound(sigma: float, N: float) -> None:
    rng = np.random.default_rng(1)
    for channels, entries in [(1, 1), (3, 1), (2, 5)]:
        shape = (50_000, channels, 1)
        keys, guesses = (
            rng.uniform(-N, 0, shape) + sigma * rng.normal(size=(50_000, channels, entries)) for _ in "12"
        )
        distance = np.sqrt(((keys - guesses) ** 2).sum(axis=(1, 2)))
        for share in (0.01, 0.1, 0.5):
            epsilon = float(np.quantile(distance, share))
            met = float((distance <= epsilon).mean())
            bound = math.exp(log_recovery_probability(epsilon, N, channels, entries))
            assert met <= bound * (1 + 5 / math.sqrt(50_000 * bound))


def test_the_probability_of_many_channels_is_computed_in_logs_and_clipped() -> None:
    """Γ(1 + m/2) is beyond float64 from m = 340 on."""
    log = log_recovery_probability(1.0, 100.0, channels=784)
    stirling = 392 * math.log(392) - 392 + 0.5 * math.log(2 * math.pi * 392)
    assert log == pytest.approx(392 * math.log(math.pi) - stirling - 784 * math.log(100), abs=1e-3)
    assert log_recovery_probability(1e9, 1.0, channels=784) == 0.0


@pytest.mark.parametrize(("channels", "entries"), [(1, 1), (6, 196), (2000, 1)])
def test_the_bound_is_vacuous_from_about_a_quarter_of_the_range_on(channels: int, entries: int) -> None:
    """Where it reaches 1, found by bisection over the root mean squared error per number."""

    def spare(error: float) -> float:
        distance = error * math.sqrt(channels * entries)
        # far from clipping: the key's range is a million times larger, which shifts the log by m·ln 10⁶
        return log_recovery_probability(distance, 3e6, channels, entries) + channels * math.log(1e6)

    assert vacuous_error(3.0, channels) == pytest.approx(brentq(spare, 1e-3, 1e3), rel=1e-9)
    if channels == 2000:
        assert vacuous_error(1.0, channels) == pytest.approx(0.242, abs=1e-3)


# -- Theorem 2 -----------------------------------------------------------------------------------------


def _auxiliary(d: int) -> tuple[Array, Array]:
    """The paper's 40 auxiliary rows: Gaussian embeddings, one-hot labels of 10 classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, d)), np.eye(10)[rng.integers(0, 10, 40)]


def _program(H: Array, y: Array) -> float:
    """The minimum by a second-order cone program."""
    W = cp.Variable((H.shape[1], y.shape[1]))
    return float(cp.Problem(cp.Minimize(cp.sum(cp.norm(H @ W - y, axis=1)))).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("d", [5, 30])
def test_theorem_2_is_the_least_sum_of_distances_and_never_above_it(d: int) -> None:
    H, y = _auxiliary(d)
    least = _program(H, y)
    bound = label_error_bound(H, y)
    assert bound == pytest.approx(least, rel=1e-5)
    assert bound <= least * (1 + 1e-8)
    assert label_error_bound(H, y, steps=2) <= least  # a bound however early it ends
    if d == 30:
        assert bound == pytest.approx(16.1, abs=0.05)


def guessed_scale_error(W: Array, H: Array, scale: Array, guess: Array) -> Array:
    """Lemma 1's lower bound (n,) of ‖x − x̂‖₂ for x̂ = W⁺ D'⁻¹ H, with the erratum; in units of the layer's
    input.

    Args:
        W: the layer's weights (w, d), of full column rank.
        H: what the layer gives, γ ⊙ W x (n, w).
        scale: γ (w,) or (n, w), nowhere 0.
        guess: the guessed γ', likewise.
    """
    apart = H / scale - H / guess
    inside = np.linalg.lstsq(W, apart.T, rcond=None)[0].T @ W.T
    bound: Array = np.linalg.norm(inside, axis=1) / np.linalg.norm(W, 2)
    return bound


def _behind_scale(rng: np.random.Generator, outputs: int, inputs: int) -> tuple[float, float, float]:
    """With H = W s ∘ W x and a guess s' of the key: the error of W⁺ D'⁻¹ H, its bound, and (7) as printed."""
    w, x = rng.normal(size=(outputs, inputs)), rng.random(inputs)
    scale, guess = (w @ rng.uniform(-5, 0, inputs) for _ in range(2))
    h = scale * (w @ x)
    error = np.linalg.norm(x - np.linalg.pinv(w) @ (h / guess))
    printed = np.linalg.norm(h / scale - h / guess) / np.linalg.svd(w, compute_uv=False)[0]
    return float(error), float(guessed_scale_error(w, h[None], scale, guess)[0]), float(printed)


def test_lemma_1_bounds_a_guess_of_the_scale_key_for_an_invertible_layer() -> None:
    """Equation (7), as printed; it is reached to a tenth somewhere, so the bound is no less."""
    rng = np.random.default_rng(7)
    found = np.array([_behind_scale(rng, d, d) for d in (1, 2, 3, 8) for _ in range(500)])
    np.testing.assert_allclose(found[:, 1], found[:, 2], rtol=1e-6)
    assert (found[:, 0] >= found[:, 1] * (1 - 1e-6)).all()
    assert (found[:, 1] / found[:, 0]).max() > 0.9


def test_lemma_1_fails_for_a_tall_layer_unless_its_range_is_meant() -> None:
    """Its proof multiplies W⁺ by W: only what lies in the range of W comes back."""
    rng = np.random.default_rng(8)
    found = np.array([_behind_scale(rng, 8, 3) for _ in range(1000)])
    assert (found[:, 0] < 0.9 * found[:, 2]).mean() > 0.05
    assert (found[:, 0] >= found[:, 1] * (1 - 1e-6)).all()
    assert (found[:, 1] / found[:, 0]).max() > 0.9


@pytest.mark.parametrize("d", [40, 50])
def test_theorem_2_is_zero_in_the_papers_own_setting(d: int) -> None:
    """40 auxiliary rows with 40 or more numbers each: a linear attack fits them without an error."""
    assert label_error_bound(*_auxiliary(d)) == 0.0


def test_with_equal_embeddings_the_special_case_is_a_bound_and_one_key_gives_nothing() -> None:
    rng = np.random.default_rng(2)
    H = np.repeat(rng.normal(size=(1, 6)), 9, axis=0)
    W, keys = rng.normal(size=(4, 6)), rng.normal(size=(9, 6))
    y = (keys @ W.T) * (H @ W.T)  # T_i = diag(W s_i) W
    pairs = sum(np.linalg.norm(y[i] - y[j]) for i in range(9) for j in range(i)) / 8
    assert pairs <= label_error_bound(H, y) == pytest.approx(_program(H, y), rel=1e-5)
    assert label_error_bound(H, np.repeat(y[:1], 9, axis=0)) == 0.0


# -- the blind guesses that FedAdOb's errors stand beside ----------------------------------------------


@pytest.mark.facts
@pytest.mark.parametrize(
    ("name", "file", "last", "expected"),
    [
        ("mnist", "t10k-images-idx3-ubyte.gz", 10_000, [0.114, 0.231, 0.067, 0.315]),
        ("cifar10_lossless", "cifar10_batch_0.png", 4_000, [0.287, 0.064, 0.062, 0.148]),
    ],
)
def test_the_papers_recovery_errors_are_above_blind_guesses(
    name: str, file: str, last: int, expected: list[float]
) -> None:
    """MSE of zero, grey, the mean image and uniform pixels; FedAdOb prints .1205 on AlexNet-CIFAR10."""
    if not (Path(os.environ.get("VFLENS_DATA", "")) / file).is_file():
        pytest.skip(WITHOUT)
    x = dataset(name, {}).load().features[-last:] / 255
    found = [(x**2).mean(), ((x - 0.5) ** 2).mean(), x.var(axis=0).mean(), (x**2 - x + 1 / 3).mean()]
    np.testing.assert_allclose(found, expected, atol=6e-4)
    if name == "cifar10_lossless":
        assert min(found) < TABLE_V[-1][2]
