"""One step on shares: against its twin, against plain regression, against Python, and simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binomtest
from sharing import SCALE, Data, Hidden, Seen, deal, one_step, uniform
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from vflens.numerics.fixed_point import decoded, encoded
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS, fitting
from vflens.numerics.shares.sigmoid import RESIDUAL_BITS, series, waves
from vflens.numerics.shares.step import Masks, twin
from vflens.numerics.shares.truncation import pair
from vflens.types import Array

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(1, 4))


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.integers(0, 2**32))
def test_the_twin_has_the_same_bits(shape: tuple[int, int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = Data.drawn(rng, *shape)
    seen = one_step(data, deal(rng, data, SCALE), SCALE)
    alone = twin(data.theta, (data.features, data.labels), (seen.opened[1], seen.opened[3]), SCALE)
    np.testing.assert_array_equal(seen.theta[0] + seen.theta[1], alone)


def test_three_hundred_steps_are_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    x, rate, l2, spared = rng.random((2000, 12)), 0.5, 1e-3, np.arange(12)[:, None] != 3
    y = (rng.random(2000) < expit((x - 0.5) @ rng.normal(size=12) * 3)).astype(float)[:, None]
    scale, plain, exact = fitting(rate, l2, 64), np.zeros((12, 1)), Data(*(np.zeros((1, 1)),) * 3)
    exact.theta = encoded(plain, PARAMETER_BITS, 1)
    for _ in range(300):
        rows = rng.choice(2000, 64, replace=False)
        data = Data(encoded(x[rows], FEATURE_BITS, 1), encoded(y[rows], RESIDUAL_BITS, 1), exact.theta)
        opened = uniform(rng, 64, 1), uniform(rng, 12, 1)
        exact.theta = twin(data.theta, (data.features, data.labels), opened, scale, spared)
        gradient = x[rows].T @ (expit(x[rows] @ plain) - y[rows]) / 64 + 2 * l2 * plain * spared
        plain -= scale.effective_rate(64) * gradient
    theta = decoded(exact.theta, PARAMETER_BITS)
    assert np.abs(plain).max() > 1
    assert np.abs(theta - plain).max() < 5e-3
    np.testing.assert_array_equal(x @ theta > 0, x @ plain > 0)


def _masks_that_show(seen: Seen, own: Hidden, data: Data, *, first: bool) -> Hidden:
    """The other party's shares for which the data lead to the bytes in ``seen``, where ``own`` are its."""
    e, (delta, turned, rho, hidden) = seen.e, seen.opened
    u = data.features - e
    logits = data.features @ data.theta
    r = turned - logits
    of_r = waves(r).view(np.uint64)
    residual = series(turned, of_r) + np.uint64(1 << (RESIDUAL_BITS - 1)) - data.labels
    decay, rate = np.uint64(SCALE.decay), np.uint64(SCALE.rate(len(e)))
    change = (data.features.T @ residual) * rate + data.theta * decay
    v, w, t = data.theta - delta, residual - rho, hidden - np.uint64(2**62) - change
    whole = Masks(v, t, w, r, u @ v, u.T @ w, of_r, *pair(t, SCALE.shift))
    return Hidden(
        u - own.u, data.theta - own.theta, Masks(*(a - b for a, b in zip(whole, own.masks, strict=True)))
    )


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.integers(0, 2**32), st.booleans())
def test_for_other_data_masks_exist_that_show_the_same_bytes(
    shape: tuple[int, int, int], seed: int, at_active: bool
) -> None:
    """What a party saw of a step fits any other data of the same shape: the proof of secrecy, run.

    Its own shares of U and of masks stay, which are uniform in either world; the other party's change.
    """
    rng = np.random.default_rng(seed)
    data, others = Data.drawn(rng, *shape), Data.drawn(rng, *shape)
    if at_active:
        others.labels = data.labels  # it knows its labels
    hidden = deal(rng, data, SCALE)
    seen = one_step(data, hidden, SCALE)
    own = 0 if at_active else 1
    explained = _masks_that_show(seen, hidden[own], others, first=at_active)
    both = (hidden[0], explained) if at_active else (explained, hidden[1])
    again = one_step(others, both, SCALE)
    np.testing.assert_array_equal(again.e, seen.e)
    before, after = (s.sent[1 - own] + s.opened for s in (seen, again))
    assert len(before) == 8
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def _bits_seen(data: Data, rng: np.random.Generator) -> Array:
    """The passive party's whole view of one step as bits: E, the other's messages, what was opened."""
    seen = one_step(data, deal(rng, data, SCALE), SCALE)
    parts = [seen.e, *seen.sent[0], *seen.opened]
    return np.unpackbits(np.concatenate([part.ravel() for part in parts]).view(np.uint8)).astype(float)


@pytest.mark.parametrize("masked", [True, False])
def test_a_classifier_does_not_tell_two_tables_apart(masked: bool) -> None:
    """It does where θ − v is opened without v: the classifier could have."""
    rng = np.random.default_rng(3)
    tables = [Data.drawn(rng, 6, 3, 1) for _ in range(2)]
    views, truth = [], rng.integers(0, 2, 400)
    for which in truth:
        view = _bits_seen(tables[which], rng)
        if not masked:
            view[:64] = np.unpackbits(tables[which].theta[:1].view(np.uint8).ravel())
        views.append(view)
    model = LogisticRegression(C=1e-3, max_iter=200)
    right = round(float(cross_val_score(model, np.stack(views), truth, cv=5).mean()) * len(truth))
    low, high = binomtest(right, len(truth)).proportion_ci()
    assert (low <= 0.5 <= high) == masked


def test_the_change_of_theta_keeps_within_the_limit() -> None:
    """The largest features, residuals and parameters that a run can have."""
    for rate, l2, rows in [(0.05, 1e-4, 256), (2.0, 0.25, 32), (0.01, 0.0, 512)]:
        scale = fitting(rate, l2, rows)
        gradient = rows * 1.01 * 2**44
        theta = 1.01 / (2 * l2) * 2**20 if l2 else 0.0
        assert 2**59 < gradient * scale.rate(rows) + theta * scale.decay < 2**62
        assert abs(scale.effective_rate(rows) / rate - 1) < 1 / 64


@pytest.mark.parametrize(
    ("rate", "l2", "rows", "said"),
    [(0.05, 1e-4, 1 << 16, "batch_size of at most"), (1.0, 0.6, 32, "at most 1/2")],
)
def test_settings_without_a_scale_are_refused(rate: float, l2: float, rows: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fitting(rate, l2, rows)
