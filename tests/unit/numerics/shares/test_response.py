"""The two responses of a logit, and how far linear regression can lead parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vflens.numerics.fixed_point import decoded, encoded
from vflens.numerics.shares.response import IDENTITY, SIGMOID, Response, largest_rate, reach
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS, fitting
from vflens.numerics.shares.sigmoid import LOGIT_BITS
from vflens.numerics.shares.step import twin
from vflens.types import Array

STEPS = 2000
_EDGES = [0.0, 2.0**-36, 2.0**-20, 0.37, 1.0, 12.0, 1e4, 2.0**25]
LOGITS = np.array([sign * z for z in _EDGES for sign in (1, -1)])


@pytest.mark.parametrize("seed", range(4))
def test_the_identity_is_the_logit_to_one_unit_whatever_the_mask(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = np.tile(LOGITS, 50)[:, None]
    mask = rng.integers(0, 2**64, z.shape, np.uint64)
    opened = encoded(z, LOGIT_BITS, 1) + mask + IDENTITY.offset
    errors = decoded(IDENTITY.share(opened, IDENTITY.of_mask(mask)), IDENTITY.bits) - z
    assert np.abs(errors).max() < 2.0**-IDENTITY.bits * 1.001
    assert np.abs(errors).max() > 0


@pytest.mark.parametrize("response", [SIGMOID, IDENTITY], ids=["σ(z)", "z"])
def test_shares_give_what_real_numbers_give_and_it_leads_back(response: Response) -> None:
    z, rng = np.linspace(-6, 6, 201)[:, None], np.random.default_rng(6)
    mask = rng.integers(0, 2**64, z.shape, np.uint64)
    opened = encoded(z, LOGIT_BITS, 1) + mask + response.offset
    answered = decoded(response.share(opened, response.of_mask(mask)), response.bits)
    np.testing.assert_allclose(answered, response.of_logits(z), atol=5e-4)
    np.testing.assert_allclose(response.logits(response.of_logits(z)), z, atol=1e-9)


@pytest.mark.parametrize("response", [SIGMOID, IDENTITY], ids=["σ(z)", "z"])
def test_shares_of_what_the_mask_gives_are_shares_of_the_response(response: Response) -> None:
    rng = np.random.default_rng(5)
    mask, opened = (rng.integers(0, 2**64, (9, 2), np.uint64) for _ in range(2))
    whole = response.of_mask(mask)
    assert whole.shape == (response.dealt, 9, 2)
    own = rng.integers(0, 2**64, whole.shape, np.uint64)
    summed = response.share(opened, own) + response.share(opened, whole - own, first=False)
    np.testing.assert_array_equal(summed, response.share(opened, whole))


def _followed(x: Array, y: Array, rate: float, l2: float) -> Array:
    """θ after :data:`STEPS` whole batches, each step θ − η∇(mean (z − y)² + λΣθ²)."""
    theta = np.zeros((x.shape[1], 1))
    for _ in range(STEPS):
        theta = theta - rate * (2 * x.T @ (x @ theta - y) / len(x) + 2 * l2 * theta)
    return theta


def _steep() -> tuple[Array, Array]:
    """Two people alike but for 1/30 of a column, whose labels are 0 and 1: the slope wants to be 30."""
    return np.array([[1 - 1 / 30, 1], [1, 1]]), np.array([[0.0], [1.0]])


def _from_middle(theta: Array) -> float:
    middle = np.zeros_like(theta)
    middle[-1] = 0.5
    return float(np.linalg.norm(theta - middle))


def test_parameters_stay_within_reach_and_come_near_to_it() -> None:
    x, y = _steep()
    found, bound = _from_middle(_followed(x, y, 1 / 4, 0.0)), reach(1 / 4, 0.0, 2, STEPS)
    assert bound / 4 < found < bound


@pytest.mark.parametrize(("columns", "l2"), [(2, 0.0), (5, 0.1), (20, 0.0)])
def test_no_stream_of_rows_and_labels_leads_beyond(columns: int, l2: float) -> None:
    """Rows at corners of [−1, 1], as defences may leave them; labels are those that θ likes least."""
    rng, rate = np.random.default_rng(columns), 0.5 / (columns + l2)
    theta, away = np.zeros((columns, 1)), list[float]()
    for step in range(1, STEPS):
        x = np.hstack([rng.choice([-1, 0, 1], (3, columns - 1)), np.ones((3, 1))])
        y = ((x @ theta < 0.5) if step % 3 else (x @ theta > 0.5)).astype(float)
        theta = theta - rate * (2 * x.T @ (x @ theta - y) / 3 + 2 * l2 * theta)
        away.append(_from_middle(theta) / reach(rate, l2, columns, step))
    assert 0.02 < max(away) < 1


def test_beyond_the_rate_there_is_no_bound() -> None:
    """So that the refusal is no idle precaution: of equal rows each step overshoots the last one."""
    x, y = np.ones((4, 5)), np.zeros((4, 1))
    y[0] = 1
    assert np.abs(_followed(x, y, 1.1 / 5, 0.0)).max() > 1e100
    assert np.abs(_followed(x, y, 0.5 / 5, 0.0)).max() < 1


@pytest.mark.parametrize("l2", [0.0, 1e-4, 0.05, 7.0, 1e308])
def test_the_largest_rate_is_taken_and_tight(l2: float) -> None:
    for columns in range(1, 2000):
        rate = largest_rate(columns, l2)
        assert rate * (columns + l2) <= 1 / 2 < 1.01 * rate * (columns + l2)
        assert rate == float(f"{rate:.2e}")


def test_the_integers_have_room_for_the_steepest_slope() -> None:
    x, y = _steep()
    rng, scale = np.random.default_rng(0), fitting(IDENTITY, 1 / 4, 0.0, 2, columns=2, steps=STEPS)
    rows = encoded(x, FEATURE_BITS, 1), encoded(y, IDENTITY.bits, 1)
    theta = np.zeros((2, 1), np.uint64)
    for _ in range(STEPS):
        opened = rng.integers(0, 2**64, (2, 2, 1), np.uint64)
        theta = twin(theta, rows, (opened[0], opened[1]), scale)
    exact = _followed(decoded(rows[0], FEATURE_BITS), y, scale.effective_rate(2), 0.0)
    assert np.abs(exact).max() > 2
    assert np.abs(decoded(theta, PARAMETER_BITS) - exact).max() < 1e-3


@pytest.mark.parametrize(("columns", "steps", "l2"), [(31, 1000, 1e-4), (1001, 10_000, 0.0), (5, 10**6, 0.1)])
def test_the_largest_change_is_that_of_the_largest_row(columns: int, steps: int, l2: float) -> None:
    """All rows are ones, at which θ has moved by its whole reach: |z − y| = ½ + √d · reach."""
    rate, rows = 0.5 / (columns + l2), 256
    scale = fitting(IDENTITY, rate, l2, rows, columns=columns, steps=steps)
    far = reach(rate, l2, columns, steps)
    residual, theta = 0.5 + math.sqrt(columns) * far, far + 0.5
    worst = rows * 2**16 * residual * 2**20 * scale.rate(rows) + theta * 2**20 * scale.decay
    assert scale.largest_change(rows) == pytest.approx(worst, rel=0.02)
    assert 2**59 < worst < 2**62
    assert scale.rate(rows) >= 32
    assert residual < 2**25  # the second opening truncates below 2⁶² too


@pytest.mark.parametrize(
    ("rate", "l2", "rows", "steps", "text"),
    [
        (
            0.1,
            0.0,
            32,
            100,
            "and d = 10, the columns of all .* take at most 0.05, which",
        ),
        (0.05, 1.0, 32, 100, r"take at most 0.0454, which is 1/\(2\(d \+ l2\)\)$"),
        (0.05, 0.0, 1 << 17, 10**6, "; take fewer epochs, or a batch_size of at most "),
        (0.05, 0.0, 32, 10**12, "; take fewer epochs$"),
        (1e-12, 0.0, 32, 100, "; take a larger learning_rate, or a batch_size of at most "),
    ],
)
def test_settings_without_a_bound_or_a_scale_are_refused(
    rate: float, l2: float, rows: int, steps: int, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        fitting(IDENTITY, rate, l2, rows, columns=10, steps=steps)
