"""The linear estimators against independent routes: CVXPY, conditioning, regression, theorems, digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.linalg import null_space, pinv
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_digits

from vflens import attacks
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.shrinkage import shrunk_covariance
from vflens.types import Array, Moments


def _mse(name: str, A: Array, b: Array, truth: Array, **given: Any) -> float:
    return float(((attacks.estimate(name, A, b, **given).values - truth) ** 2).mean())


# -- nearest solutions, against CVXPY ------------------------------------------------------------------


def _system(seed: int) -> tuple[Array, Array]:
    """A random consistent system, every third one rank-deficient, and features in the box."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(1, 6)), int(rng.integers(2, 9))
    A = rng.normal(size=(m, d))
    if seed % 3 == 0:
        A = np.vstack([A, A[0] - 2 * A[-1]])
    return A, rng.random((3, d))


def _nearest_by_cvxpy(A: Array, b: Array, center: Array) -> Array:
    x = cp.Variable(A.shape[1])
    distance = cp.sum_squares(x - center)  # type: ignore[attr-defined]
    cp.Problem(cp.Minimize(distance), [A @ x == b]).solve(solver=cp.CLARABEL)  # type: ignore[no-untyped-call]
    return np.asarray(x.value)


@pytest.mark.parametrize("seed", range(12))
def test_ls_half_star_and_mean_star_are_the_nearest_solutions(seed: int) -> None:
    A, truth = _system(seed)
    d = A.shape[1]
    mu = np.random.default_rng(seed).random(size=(d,))
    centers: Mapping[str, Array] = {"ls": np.zeros(d), "half_star": np.full(d, 0.5), "mean_star": mu}
    for name, center in centers.items():
        expected = [_nearest_by_cvxpy(A, A @ x, center) for x in truth]
        values = attacks.estimate(name, A, truth @ A.T, moments=Moments(mu)).values
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)  # the solver's tolerance


def test_equations_that_contradict_each_other_are_met_in_least_squares() -> None:
    """Independent route: A⁺b is the limit of ridge regression for a vanishing penalty."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(5, 6))
    ridge = np.linalg.solve(A.T @ A + 1e-8 * np.eye(4), A.T @ b.T).T
    np.testing.assert_allclose(attacks.estimate("ls", A, b).values, ridge, rtol=0, atol=1e-6)


def test_the_residual_is_that_of_the_estimate() -> None:
    estimate = attacks.estimate("clamped_ls", [[3.0, 4.0]], [[25.0], [0.5]])
    np.testing.assert_allclose(estimate.values, [[1.0, 1.0], [0.06, 0.08]])
    np.testing.assert_allclose(estimate.extras["residual"], [18.0, 0.0], atol=1e-12)
    assert list(estimate.status) == ["ok", "ok"]  # it can be solved, outside the box


# -- LMMSE ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_lmmse_is_the_gaussian_conditional_mean(seed: int) -> None:
    """The mode of N(μ, K) on A x = b, from the optimality conditions [[K⁻¹, Aᵀ], [A, 0]]."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    m = int(rng.integers(1, d))
    A, root, mu = rng.normal(size=(m, d)), rng.normal(size=(d, d)), rng.random(d)
    K = root @ root.T + 0.1 * np.eye(d)
    b = rng.normal(size=(4, m))
    precision = np.linalg.inv(K)
    optimality = np.block([[precision, A.T], [A, np.zeros((m, m))]])
    right = np.vstack([np.tile(precision @ mu, (4, 1)).T, b.T])
    values = attacks.estimate("lmmse", A, b, moments=Moments(mu, K)).values
    np.testing.assert_allclose(values, np.linalg.solve(optimality, right)[:d].T, rtol=0, atol=1e-9)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_lmmse_is_the_best_linear_regression(d: int) -> None:
    """On a sample with its own moments: least squares of x on (1, A x), for skewed, dependent features.

    The last feature repeats the first, so the covariance is singular.
    """
    rng = np.random.default_rng(d)
    x = rng.beta(0.5, 1.0, size=(5000, d)) * rng.random((5000, 1))
    x = np.hstack([x, x[:, :1]])
    A = rng.normal(size=(2, d + 1))
    b = x @ A.T
    design = np.hstack([np.ones((len(x), 1)), b])
    regression = design @ np.linalg.lstsq(design, x, rcond=1e-10)[0]
    K = np.cov(x.T, bias=True)
    moments = Moments(x.mean(axis=0), K)
    values = attacks.estimate("lmmse", A, b, moments=moments).values
    np.testing.assert_allclose(values, regression, rtol=0, atol=1e-9)
    left = np.trace(K - K @ A.T @ pinv(A @ K @ A.T, rtol=1e-9) @ A @ K) / (d + 1)
    np.testing.assert_allclose(((values - x) ** 2).mean(), left, rtol=1e-6, atol=1e-12)
    for other in ("ls", "half_star", "mean_star"):
        assert ((values - x) ** 2).mean() <= _mse(other, A, b, x, moments=moments) + 1e-12


def test_lmmse_without_spread_answers_the_mean() -> None:
    moments = Moments(np.array([0.2, 0.4]), np.zeros((2, 2)))
    np.testing.assert_array_equal(
        attacks.estimate("lmmse", [[1.0, 1.0]], [[1.9]], moments=moments).values, [[0.2, 0.4]]
    )


# -- theorems of RVG -----------------------------------------------------------------------------------


def test_random_guess_errs_by_one_twelfth_more_than_half() -> None:
    """Monte-Carlo, whatever the data: E(x − u)² − (x − ½)² = Var u = 1/12 (RVG §V)."""
    rng = np.random.default_rng(0)
    truth = rng.beta(0.3, 2.0, size=(40_000, 5))
    guess = attacks.estimate("random_guess", np.zeros((0, 5)), np.zeros((40_000, 0)), rng=rng).values
    excess = (guess - truth) ** 2 - (0.5 - truth) ** 2
    assert abs(excess.mean() - 1 / 12) < 4 * excess.std() / np.sqrt(excess.size)


@pytest.mark.parametrize("seed", range(20))
def test_no_row_is_estimated_worse_by_half_star_than_by_half(seed: int) -> None:
    """RVG Theorem 1, from exact scores."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 8)), int(rng.integers(1, 10))
    weight, known, truth = rng.normal(size=(k, d)), rng.normal(size=(50, k)), rng.random((50, d))
    [(rows, system)] = LinearSystem.from_scores(log_softmax(truth @ weight.T + known, axis=1), known, weight)
    np.testing.assert_array_equal(rows, np.arange(50))
    values = attacks.estimate("half_star", system.A, system.b).values
    error, blind = (np.linalg.norm(truth - guess, axis=1) for guess in (values, np.full((50, d), 0.5)))
    assert (error <= blind + 1e-9).all()


@pytest.mark.parametrize(("k", "d"), [(2, 3), (4, 9), (6, 6), (5, 3)])
def test_errors_of_nearest_solutions_follow_theorem_2(k: int, d: int) -> None:
    """MSE = Tr((I − P) K_z)/d with z = 0, ½, μ; I − P here from SciPy's null space (RVG Theorem 2)."""
    rng = np.random.default_rng(k)
    A, x = np.diff(rng.normal(size=(k, d)), axis=0), rng.random((200, d)) ** 2
    W = null_space(A)
    mu = x.mean(axis=0)
    for name, z in (("ls", 0 * mu), ("half_star", 0 * mu + 0.5), ("mean_star", mu)):
        K = (x - z).T @ (x - z) / len(x)
        measured = _mse(name, A, x @ A.T, x, moments=Moments(mu))
        np.testing.assert_allclose(measured, np.trace(W.T @ K @ W) / d, rtol=1e-9, atol=1e-15)


def test_gaussian_noise_on_the_logits_costs_what_its_covariance_says() -> None:
    """The error of ls and half* grows by σ² Tr(A⁺J Jᵀ A⁺ᵀ)/d (RVG §VII-B); Monte-Carlo over 200,000 rows."""
    rng = np.random.default_rng(0)
    weight, sigma = rng.normal(size=(4, 6)), 0.3
    x = rng.random((200_000, 6))
    noise = sigma * rng.normal(size=(200_000, 4))
    A, noisy_b = np.diff(weight, axis=0), np.diff(x @ weight.T + noise, axis=1)
    per_logit = pinv(A) @ np.diff(np.eye(4), axis=0)
    for name in ("ls", "half_star"):
        gain = _mse(name, A, noisy_b, x) - _mse(name, A, x @ A.T, x)
        np.testing.assert_allclose(gain, sigma**2 * (per_logit**2).sum() / 6, rtol=0.01)  # 6 sd


@pytest.mark.parametrize("seed", range(5))
def test_clamping_never_hurts(seed: int) -> None:
    A, truth = _system(seed)
    b = truth @ A.T
    errors = [((attacks.estimate(n, A, b).values - truth) ** 2).sum(axis=1) for n in ("clamped_ls", "ls")]
    assert (errors[0] <= errors[1] + 1e-12).all()


# -- digits --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """Softmax regression on 8×8 digits, the right half of the image passive: 360 predictions."""

    A: Array
    b: Array
    truth: Array
    auxiliary: Array  # the training rows of the passive half


def _softmax_regression(x: Array, y: Array, l2: float) -> Array:
    """The optimum (k, d + 1) of mean cross-entropy + l2 Σθ², bias last."""
    x, target = np.hstack([x, np.ones((len(x), 1))]), np.eye(y.max() + 1)[y]
    shape = (target.shape[1], x.shape[1])

    def objective(theta: Array) -> tuple[float, Array]:
        z = x @ theta.reshape(shape).T
        normaliser = logsumexp(z, axis=1, keepdims=True)
        gradient = (np.exp(z - normaliser) - target).T @ x / len(x)
        loss = (normaliser[:, 0] - (z * target).sum(axis=1)).mean() + l2 * (theta**2).sum()
        return loss, gradient.ravel() + 2 * l2 * theta

    start = np.zeros(shape).ravel()
    theta: Array = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000}).x
    return theta.reshape(shape)


def _digits(seed: int) -> Digits:
    x, y = load_digits(return_X_y=True)
    x = x / 16
    order = np.random.default_rng(seed).permutation(len(x))
    train, predict = order[:-360], order[-360:]
    theta = _softmax_regression(x[train], y[train], l2=1e-4)
    weight, bias = theta[:, :-1], theta[:, -1]
    passive = np.arange(64) % 8 >= 4
    log_c = log_softmax(x[predict] @ weight.T + bias, axis=1)
    known = x[predict][:, ~passive] @ weight[:, ~passive].T + bias
    [(_, system)] = LinearSystem.from_scores(log_c, known, weight[:, passive])
    return Digits(system.A, system.b, x[predict][:, passive], x[train][:, passive])


#: Per-feature errors of an earlier, independent implementation, over its L2 penalties and splits.
REFERENCE: Mapping[str, tuple[float, float]] = {
    "mean image": (0.075, 0.085),
    "half_star": (0.112, 0.125),
    "mean_star": (0.030, 0.038),
    "lmmse": (0.0195, 0.0225),
}


@pytest.mark.facts
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_moments_make_half_star_look_blind_on_digits(seed: int) -> None:
    digits = _digits(seed)
    mean = digits.auxiliary.mean(axis=0)
    moments = Moments(mean, ledoit_wolf(digits.auxiliary)[0])
    errors = {"mean image": float(((digits.truth - mean) ** 2).mean())}
    for name in ("half_star", "mean_star", "lmmse"):
        errors[name] = _mse(name, digits.A, digits.b, digits.truth, moments=moments)
    assert all(low <= errors[name] <= high for name, (low, high) in REFERENCE.items()), errors
    assert errors["lmmse"] < errors["mean_star"] < errors["mean image"] < errors["half_star"]


@pytest.mark.parametrize("columns", [1, 2, 7, 32, 392])
@pytest.mark.parametrize("rows", [2, 50, 400])
def test_covariance_is_shrunk_as_the_library_does_to_the_bit(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows + columns)
    features = rng.random((rows, columns)) * rng.random(columns)
    features[:, -1] = features[:, 0]  # singular
    np.testing.assert_array_equal(shrunk_covariance(features), ledoit_wolf(features)[0])


def test_covariance_of_equal_rows_is_zero() -> None:
    np.testing.assert_array_equal(shrunk_covariance(np.full((5, 3), 0.25)), np.zeros((3, 3)))
