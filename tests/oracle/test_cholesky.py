"""Cholesky of a batch against NumPy's own, on both sides of the size at which LAPACK takes over."""

from __future__ import annotations

import numpy as np
import pytest

from vflens.numerics.estimators.cholesky import SMALL, factor, forward, gram, solve

SIZES = [1, 5, SMALL, SMALL + 1]


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("batch", [0, 3])
def test_a_batch_is_solved_as_each_system_alone(size: int, batch: int) -> None:
    rng = np.random.default_rng(size)
    Q, weights = rng.normal(size=(2 * size, size)), rng.uniform(0.5, 2.0, (2 * size, batch))
    given, one_side = rng.normal(size=(size, batch)), rng.normal(size=(size, 2))
    H = gram(Q, weights)
    L = factor(H.copy())
    found, halfway = solve(L, given), forward(L, one_side)
    assert (H.shape, found.shape, halfway.shape) == ((size, size, batch), (size, batch), (size, 2, batch))
    for n in range(batch):
        expected = Q.T @ np.diag(weights[:, n]) @ Q
        np.testing.assert_allclose(H[:, :, n], expected, atol=1e-12 * size)
        np.testing.assert_allclose(found[:, n], np.linalg.solve(expected, given[:, n]), rtol=1e-6)
        lower = np.linalg.solve(np.linalg.cholesky(expected), one_side)
        np.testing.assert_allclose(halfway[:, :, n], lower, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("least", "singular"), [(-1.0, 0.0), (1e-9, 1e-6)])
def test_a_singular_matrix_spoils_itself_alone(size: int, least: float, singular: float) -> None:
    matrices = np.stack([np.eye(size), np.diag([*np.ones(size - 1), least])], axis=-1)
    L = factor(matrices, singular)
    np.testing.assert_array_equal(np.isfinite(L[-1, -1]), [True, False])
    assert np.isnan(solve(L, np.ones((size, 2)))[-1, 1])
    assert np.isnan(forward(L, np.ones((size, 1)))[-1, 0, 1])
    np.testing.assert_array_equal(solve(L, np.ones((size, 2)))[:, 0], 1.0)
