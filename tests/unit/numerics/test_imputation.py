"""Imputation by independent routes: refits without each row, the conditional mean of a Gaussian."""

from __future__ import annotations

import numpy as np
import pytest

from vflens.numerics.imputation import STRENGTHS, FittedImputation, imputation
from vflens.types import Array


def _drawn(m: int, noise: float = 0.1, seed: int = 0) -> tuple[Array, Array]:
    """Own columns (m, 4), one of which repeats another, and columns (m, 3) that depend on them."""
    rng = np.random.default_rng(seed)
    own = rng.random((m, 3))
    own = np.column_stack([own, own[:, 0]])
    return own, own @ rng.normal(size=(4, 3)) + noise * rng.normal(size=(m, 3))


def _refitted(own: Array, x: Array, penalty: float) -> Array:
    """The errors (m, d) of each row by ridge regression of the others, as normal equations with a column
    of ones that is not penalised.
    """
    design = np.column_stack([own, np.ones(len(own))])
    penalties = np.diag([*np.full(own.shape[1], min(penalty, 1e12)), 0.0])
    errors = np.empty_like(x)
    for i in range(len(x)):
        Z, t = np.delete(design, i, 0), np.delete(x, i, 0)
        errors[i] = x[i] - design[i] @ np.linalg.solve(Z.T @ Z + penalties, Z.T @ t)
    return errors


@pytest.mark.parametrize("noise", [0.05, 0.5, 5.0])
def test_errors_left_out_and_strength_are_those_of_refits(noise: float) -> None:
    own, x = _drawn(12, noise)
    scale = ((own - own.mean(0)) ** 2).sum() / 4
    refits = [_refitted(own, x, strength * scale) for strength in STRENGTHS]
    best = min(refits, key=lambda errors: float((errors**2).sum()))
    np.testing.assert_allclose(imputation(own, x).left_out, best, atol=1e-8)


def test_many_rows_of_a_gaussian_give_its_conditional_mean() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    K, mean = root @ root.T, rng.normal(size=5)
    drawn = rng.multivariate_normal(mean, K, size=100_000)
    a = rng.normal(size=(6, 3))
    exact = mean[3:] + (a - mean[:3]) @ np.linalg.inv(K[:3, :3]) @ K[:3, 3:]
    found = imputation(drawn[:, :3], drawn[:, 3:])
    np.testing.assert_allclose(found(a), exact, atol=0.05)
    residual = K[3:, 3:] - K[3:, :3] @ np.linalg.inv(K[:3, :3]) @ K[:3, 3:]
    np.testing.assert_allclose(np.cov(found.left_out.T), residual, rtol=0.03, atol=0.01)


def _means_of(found: FittedImputation, own: Array, x: Array) -> bool:
    return not found.B.any() and np.array_equal(found(own), np.tile(x.mean(0), (len(own), 1)))


@pytest.mark.parametrize("case", ["one row", "no own columns", "constant own columns"])
def test_without_anything_to_learn_it_is_the_means(case: str) -> None:
    own, x = _drawn(1 if case == "one row" else 9)
    if case != "one row":
        own = own[:, :0] if case == "no own columns" else np.full_like(own, 0.5)
    assert _means_of(imputation(own, x), own, x)


def test_columns_that_say_nothing_seldom_displace_the_means() -> None:
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(40):
        own, x, later = rng.random((30, 4)), rng.random((30, 3)), rng.random((200, 3))
        found = imputation(own, x)
        errors.append(((found(rng.random((200, 4))) - later) ** 2).mean() / later.var(0).mean())
    assert np.mean(errors) < 1.1
