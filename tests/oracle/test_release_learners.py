"""Linear regression, the kernel SVM and the network: against CVXPY, normal equations, finite differences."""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
import pytest
from general_learner import Network, fourier_features, kernel_svm, learn
from scipy.optimize import check_grad

from vflens.errors import ConfigError, DataError
from vflens.table_noise.mechanisms import Gaussian
from vflens.table_noise.regression import linear_regression, regression_loss
from vflens.types import Array

KEY = b"a test's key"


def rows(q: int = 80, p: int = 3) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(q, p))
    return x, np.sin(x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=q)


def test_regression_is_stationary_and_least() -> None:
    """At columns of 1e-3 to 1e5 too."""
    x, y = rows()
    x = x * [1e-3, 1.0, 1e5]
    phi = linear_regression(x, y, sigma=0.3)
    gradient = 2 * 0.3 * phi - 2 * x.T @ (y - x @ phi) / len(y)
    assert (abs(gradient) < 1e-12 * (abs(x).T @ abs(y))).all()
    best = regression_loss(phi, x, y, sigma=0.3)
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-2 / np.sqrt(0.3 + np.mean(x[:, j] ** 2))
        assert regression_loss(phi + step, x, y, sigma=0.3) > best
        assert regression_loss(phi - step, x, y, sigma=0.3) > best


def test_noise_acts_as_a_ridge() -> None:
    """E over noise of the regression's normal matrix is XᵀX/q + V: for many rows φ tends to that ridge."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200_000, 2))
    y = x @ [1.0, -2.0]
    noise = Gaussian(np.array([1.0, 16.0]), 1.0)
    noisy = linear_regression(x + noise.sample(0, len(x), KEY), y)
    ridge = np.linalg.solve(x.T @ x / len(x) + noise.covariance(), x.T @ y / len(x))
    np.testing.assert_allclose(noisy, ridge, atol=0.02)
    np.testing.assert_allclose(ridge, [0.5, -1.6], atol=0.02)


def test_kernel_svm_is_the_papers_loss_with_the_bias_corrected() -> None:
    """ρ = 1e-9: the unregularised loss with [κᵀ 1], by CVXPY."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2))
    y = np.where((x**2).sum(axis=1) > 1.4, 1.0, -1.0)
    kappa = fourier_features(2, 20, 1.0, KEY)
    found = kernel_svm(x, y, kappa, theta=2.0, rho=1e-9)
    cp: Any = cvxpy
    phi = cp.Variable(21)
    hinge = cp.sum(cp.pos(1 - cp.multiply(y, np.column_stack([kappa(x), np.ones(60)]) @ phi)))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(phi[:20]) + 2.0 * hinge))
    problem.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(np.append(found.alpha, found.beta), phi.value, atol=1e-4)
    assert (found.predict(kappa(x)) == y).mean() > 0.9


def test_fourier_features_approximate_the_kernel() -> None:
    x, _ = rows(30)
    kappa = fourier_features(3, 20_000, 1.5, KEY)(x)
    distance = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(kappa @ kappa.T, np.exp(-distance / (2 * 1.5**2)), atol=0.03)


def test_network_has_the_gradient_of_its_loss() -> None:
    x, y = rows()
    network = Network(3, 5)
    loss = network.loss(x, y, decay=0.1)
    phi = network.start(KEY)
    assert check_grad(lambda w: loss(w)[0], lambda w: loss(w)[1], phi) < 1e-5
    assert loss(phi)[0] == pytest.approx(np.mean((y - network.predict(phi, x)) ** 2) + 0.1 * phi @ phi)


def test_network_learns_what_no_line_can_and_moves_less_under_less_noise() -> None:
    """Prop. 2.11 shown: φ* moves by less, the smaller the noise; from the same start, near the same
    minimiser.
    """
    x, y = rows(300)
    network = Network(3, 6)
    clean = learn(network.loss(x, y, decay=1e-3), network.start(KEY))
    assert clean.gradient < 1e-5
    assert clean.loss < 0.5 * regression_loss(linear_regression(x, y), x, y)
    moved = []
    for lam in (1e4, 1e8, 1e12):
        noise = Gaussian(np.ones(3), lam).sample(0, len(x), KEY)
        again = learn(network.loss(x + noise, y, decay=1e-3), clean.phi)
        moved.append(np.mean((network.predict(again.phi, x) - network.predict(clean.phi, x)) ** 2))
    assert moved[0] > 10 * moved[1] > 100 * moved[2]


def test_what_cannot_work_is_refused() -> None:
    x, y = rows()
    with pytest.raises(ConfigError, match=r"sigma holds 0\.0"):
        linear_regression(x, y, sigma=0.0)
    with pytest.raises(DataError, match=r"x has shape \(80, 3\) and y \(79,\)"):
        linear_regression(x, y[1:])
    with pytest.raises(DataError, match="rows and targets must be finite"):
        linear_regression(x, np.where(y > 0, y, np.nan))
