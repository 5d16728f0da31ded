"""Rows from the logits of a descent that they made themselves, against a descent written out here."""

from __future__ import annotations

import numpy as np
import pytest
from rowsofdescent import rows_of_descent
from thinned import first

from vflens.types import Array

ROWS, COLUMNS, EPOCHS, BATCH, RATE = 60, 4, 15, 10, 0.1


def _descent(x: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Weights (t, n) of rows in θ and the logits (t, n) of mini-batch descent on the mean of (z − y)²/2; NaN
    where a row is not in the batch.
    """
    rng, theta, total = np.random.default_rng(seed), np.zeros(x.shape[1]), np.zeros(len(x))
    weights, logits = list[Array](), list[Array]()
    for _ in range(EPOCHS):
        for batch in rng.permutation(len(x)).reshape(-1, BATCH):
            weights.append(total.copy())
            logits.append(np.full(len(x), np.nan))
            logits[-1][batch] = x[batch] @ theta
            residual = x[batch] @ theta - y[batch]
            theta = theta - RATE * x[batch].T @ residual / BATCH
            total[batch] -= RATE * residual / BATCH
    return np.stack(weights), np.stack(logits)


@pytest.mark.parametrize("seed", first(range(3)))
def test_a_few_known_rows_give_all_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, known = rng.random((ROWS, COLUMNS + 1)), rng.random(ROWS), np.zeros((ROWS, COLUMNS + 1), bool)
    known[: COLUMNS + 4] = known[:, -1] = True  # the last column is the adversary's own
    weights, logits = _descent(x, y, seed)
    found = rows_of_descent(weights, logits, np.where(known, x, 0.5), known)
    np.testing.assert_array_equal(found[known], x[known])
    assert np.abs(found - x).max() < 1e-5
    other = rows_of_descent(weights, np.roll(logits, 1, axis=1), np.where(known, x, 0.5), known)
    assert np.abs(other - x).max() > 0.1


def test_rotated_rows_have_the_same_logits() -> None:
    """So that without known rows nobody can tell which of them it was."""
    rng = np.random.default_rng(5)
    x, y = rng.random((ROWS, COLUMNS)), rng.random(ROWS)
    turned = x @ np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))[0]
    assert np.abs(turned - x).max() > 0.5
    for one, other in zip(_descent(x, y, 1), _descent(turned, y, 1), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_rows_that_are_all_known_stay() -> None:
    rng = np.random.default_rng(6)
    x, known = rng.random((ROWS, COLUMNS)), np.ones((ROWS, COLUMNS), bool)
    found = rows_of_descent(*_descent(x, rng.random(ROWS), 2), x, known)
    np.testing.assert_array_equal(found, x)
