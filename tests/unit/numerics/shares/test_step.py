"""One step on shares: against its twin, against plain regression, against Python, and simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binomtest
from sharing import SCALES, Data, Hidden, Seen, deal, one_step, uniform
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from vflens.numerics.fixed_point import decoded, encoded
from vflens.numerics.shares.response import IDENTITY, SIGMOID
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS, Scale, fitting
from vflens.numerics.shares.step import Masks, twin
from vflens.numerics.shares.truncation import pair
from vflens.types import Array

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(1, 4))
KINDS = st.sampled_from(list(SCALES.values()))


@settings(max_examples=40)
@given(KINDS, SHAPES, st.integers(0, 2**32))
def test_the_twin_has_the_same_bits(scale: Scale, shape: tuple[int, int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = Data.drawn(rng, scale, *shape)
    seen = one_step(data, deal(rng, data, scale), scale)
    alone = twin(data.theta, (data.features, data.labels), (seen.opened[1], seen.opened[3]), scale)
    np.testing.assert_array_equal(seen.theta[0] + seen.theta[1], alone)


def test_three_hundred_steps_are_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    x, rate, l2, spared = rng.random((2000, 12)), 0.5, 1e-3, np.arange(12)[:, None] != 3
    y = (rng.random(2000) < expit((x - 0.5) @ rng.normal(size=12) * 3)).astype(float)[:, None]
    scale = fitting(SIGMOID, rate, l2, 64, columns=12, steps=300)
    plain, exact = np.zeros((12, 1)), Data(*(np.zeros((1, 1)),) * 3)
    exact.theta = encoded(plain, PARAMETER_BITS, 1)
    for _ in range(300):
        rows = rng.choice(2000, 64, replace=False)
        data = Data(encoded(x[rows], FEATURE_BITS, 1), encoded(y[rows], SIGMOID.bits, 1), exact.theta)
        opened = uniform(rng, 64, 1), uniform(rng, 12, 1)
        exact.theta = twin(data.theta, (data.features, data.labels), opened, scale, spared)
        gradient = x[rows].T @ (expit(x[rows] @ plain) - y[rows]) / 64 + 2 * l2 * plain * spared
        plain -= scale.effective_rate(64) * gradient
    theta = decoded(exact.theta, PARAMETER_BITS)
    assert np.abs(plain).max() > 1
    assert np.abs(theta - plain).max() < 5e-3
    np.testing.assert_array_equal(x @ theta > 0, x @ plain > 0)


def test_long_training_of_whole_batches_is_the_least_squares_of_numpy() -> None:
    """Squared loss, labels between 0 and 1 with a column that explains none of them."""
    rng, rows, steps = np.random.default_rng(1), 64, 12_000
    x = np.hstack([rng.random((rows, 3)), np.ones((rows, 1))])
    y = (0.2 + x[:, :3] @ [0.5, 0.0, -0.3] + 0.05 * rng.normal(size=rows)).clip(0, 1)[:, None]
    scale = fitting(IDENTITY, 1 / 8, 0.0, rows, columns=4, steps=steps)
    integers = encoded(x, FEATURE_BITS, 1), encoded(y, IDENTITY.bits, 1)
    theta = np.zeros((4, 1), np.uint64)
    for _ in range(steps):
        theta = twin(theta, integers, (uniform(rng, rows, 1), uniform(rng, 4, 1)), scale)
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.abs(exact).max() > 0.4
    assert np.abs(decoded(theta, PARAMETER_BITS) - exact).max() < 1e-4


def test_steps_on_shares_are_those_of_linear_regression() -> None:
    """Batches, a penalty that spares a column, and the rate that the integers stand for."""
    rng = np.random.default_rng(2)
    x, y, l2, spared = rng.random((500, 12)), rng.random((500, 1)), 1e-2, np.arange(12)[:, None] != 3
    scale = fitting(IDENTITY, 0.04, l2, 32, columns=12, steps=400)
    plain, theta = np.zeros((12, 1)), np.zeros((12, 1), np.uint64)
    for _ in range(400):
        rows = rng.choice(500, 32, replace=False)
        integers = encoded(x[rows], FEATURE_BITS, 1), encoded(y[rows], IDENTITY.bits, 1)
        theta = twin(theta, integers, (uniform(rng, 32, 1), uniform(rng, 12, 1)), scale, spared)
        gradient = 2 * x[rows].T @ (x[rows] @ plain - y[rows]) / 32 + 2 * l2 * plain * spared
        plain -= scale.effective_rate(32) * gradient
    assert np.abs(plain).max() > 0.1
    assert np.abs(decoded(theta, PARAMETER_BITS) - plain).max() < 1e-4


def _masks_that_show(scale: Scale, seen: Seen, own: Hidden, data: Data) -> Hidden:
    """The other party's shares for which the data lead to the bytes in ``seen``, where ``own`` are its."""
    e, (delta, turned, rho, hidden) = seen.e, seen.opened
    u = data.features - e
    logits = data.features @ data.theta
    r = turned - logits - scale.response.offset
    of_r = scale.response.of_mask(r)
    residual = scale.response.share(turned, of_r) - data.labels
    decay, rate = np.uint64(scale.decay), np.uint64(scale.rate(len(e)))
    change = (data.features.T @ residual) * rate + data.theta * decay
    v, w, t = data.theta - delta, residual - rho, hidden - np.uint64(2**62) - change
    whole = Masks(v, t, w, r, u @ v, u.T @ w, of_r, *pair(t, scale.shift))
    return Hidden(
        u - own.u, data.theta - own.theta, Masks(*(a - b for a, b in zip(whole, own.masks, strict=True)))
    )


@settings(max_examples=40)
@given(KINDS, SHAPES, st.integers(0, 2**32), st.booleans())
def test_for_other_data_masks_exist_that_show_the_same_bytes(
    scale: Scale, shape: tuple[int, int, int], seed: int, at_active: bool
) -> None:
    """What a party saw of a step fits any other data of the same shape: the proof of secrecy, run.

    Its own shares of U and of masks stay, which are uniform in either world; the other party's change.
    """
    rng = np.random.default_rng(seed)
    data, others = Data.drawn(rng, scale, *shape), Data.drawn(rng, scale, *shape)
    if at_active:
        others.labels = data.labels  # it knows its labels
    hidden = deal(rng, data, scale)
    seen = one_step(data, hidden, scale)
    own = 0 if at_active else 1
    explained = _masks_that_show(scale, seen, hidden[own], others)
    both = (hidden[0], explained) if at_active else (explained, hidden[1])
    again = one_step(others, both, scale)
    np.testing.assert_array_equal(again.e, seen.e)
    before, after = (s.sent[1 - own] + s.opened for s in (seen, again))
    assert len(before) == 8
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def _bits_seen(scale: Scale, data: Data, rng: np.random.Generator) -> Array:
    """The passive party's whole view of one step as bits: E, the other's messages, what was opened."""
    seen = one_step(data, deal(rng, data, scale), scale)
    parts = [seen.e, *seen.sent[0], *seen.opened]
    return np.unpackbits(np.concatenate([part.ravel() for part in parts]).view(np.uint8)).astype(float)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("kind", SCALES)
def test_a_classifier_does_not_tell_two_tables_apart(kind: str, masked: bool) -> None:
    """It does where θ − v is opened without v: the classifier could have."""
    rng = np.random.default_rng(3)
    tables = [Data.drawn(rng, SCALES[kind], 6, 3, 1) for _ in range(2)]
    views, truth = [], rng.permutation(np.arange(400) % 2)  # as many of each: a blind guess is ½
    for which in truth:
        view = _bits_seen(SCALES[kind], tables[which], rng)
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
        scale = fitting(SIGMOID, rate, l2, rows, columns=9, steps=100)
        gradient = rows * 1.01 * 2**44
        theta = 1.01 / (2 * l2) * 2**20 if l2 else 0.0
        assert 2**59 < gradient * scale.rate(rows) + theta * scale.decay < 2**62
        assert abs(scale.effective_rate(rows) / rate - 1) < 1 / 64


@pytest.mark.parametrize(
    ("rate", "l2", "rows", "text"),
    [(0.05, 1e-4, 1 << 16, "batch_size of at most"), (1.0, 0.6, 32, "at most 1/2")],
)
def test_settings_without_a_scale_are_refused(rate: float, l2: float, rows: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        fitting(SIGMOID, rate, l2, rows, columns=9, steps=100)
