"""The linear decoder of several networks, against scikit-learn's ridge and all choices tried."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from vflens.attacks.helpers.networks import transfer
from vflens.attacks.helpers.networks.transfer import standardised, transferable
from vflens.types import Array


def _networks(seed: int, *, noise: float) -> tuple[list[Array], Array]:
    """Three linear networks of the same rows, which agree but for ``noise``."""
    rng = np.random.default_rng(seed)
    rows, common = rng.random((80, 3)), rng.normal(size=(3, 6))
    return [standardised(rows @ common + noise * rows @ rng.normal(size=(3, 6))) for _ in range(3)], rows


def _ridge(embedded: list[Array], rows: Array, penalty: float) -> Ridge:
    """By scikit-learn; the penalty is in units of the largest eigenvalue."""
    z = np.concatenate(embedded)
    largest = float(np.linalg.svd(z, compute_uv=False)[0] ** 2)
    return Ridge(alpha=penalty * largest).fit(z, np.tile(rows, (len(embedded), 1)))


def _left_out(embedded: list[Array], rows: Array, penalty: float) -> float:
    """The squared error where each network in turn, and half of the rows, are left out."""
    total = 0.0
    for k, judged in enumerate(embedded):
        others = [z[:40] for i, z in enumerate(embedded) if i != k]
        model = _ridge(others, rows[:40], penalty)
        total += float(((model.predict(judged[40:]).clip(0, 1) - rows[40:]) ** 2).sum())
    return total


@pytest.mark.parametrize("noise", [0.1, 1.0, 3.0])
def test_the_decoder_is_the_ridge_of_the_best_penalty(noise: float) -> None:
    embedded, rows = _networks(4, noise=noise)
    penalties = transfer._PENALTIES
    best = min(penalties, key=lambda p: _left_out(embedded, rows, p))
    new = np.random.default_rng(1).normal(size=(5, 6))
    expected = _ridge(embedded, rows, best).predict(new)
    np.testing.assert_allclose(transferable(embedded, rows)(new), expected, atol=1e-8)


def test_networks_that_disagree_get_a_larger_penalty() -> None:
    """Their decoder stays nearer to the mean row."""
    spread = [float(np.abs(transferable(*_networks(4, noise=n))(np.eye(6))).std()) for n in (0.01, 10.0)]
    assert spread[1] < 0.5 * spread[0]


def test_a_constant_channel_says_nothing() -> None:
    embedded = np.stack([np.arange(4.0), np.full(4, 7.0)], axis=1)
    found = standardised(embedded)
    np.testing.assert_allclose(found.std(axis=0), [1.0, 0.0])
    np.testing.assert_array_equal(found[:, 1], 0.0)
    np.testing.assert_array_equal(standardised(np.ones((1, 3))), 0.0)
