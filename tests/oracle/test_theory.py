"""Closed forms and bounds against what the attacks measure: Monte-Carlo, exact finite populations, finite
differences.
"""

from __future__ import annotations

import numpy as np
import pytest
from agnostic_mse import agnostic_half_star_mse, agnostic_ls_mse
from scipy.linalg import null_space
from scipy.optimize import lsq_linear
from scipy.stats import ortho_group

from vflens import attacks
from vflens.numerics.linear_system import first_differences
from vflens.numerics.theory import closed_forms as theory
from vflens.numerics.theory import distortion_theory as distortion
from vflens.types import Array, Moments

MANY = 40_000
SIGMAS = 5.0  # of the Monte-Carlo mean: false alarms below 1e-6
CENTERS = {"ls": 0.0, "half_star": 0.5}


def _features(rng: np.random.Generator, n: int, d: int) -> Array:
    """Correlated, skewed, in the box: neither centred nor Gaussian."""
    mixing = rng.dirichlet(np.ones(d), size=d)
    x: Array = rng.random((n, d)) ** 2 @ mixing.T
    return x


def _population(d: int, seed: int) -> tuple[Array, Array, Array]:
    """K_0, mean and the mixing of :func:`_mixed`, exact: u² has mean 1/3 and second moment 1/5."""
    mixing = np.random.default_rng(seed).dirichlet(np.ones(d), size=d)
    moment = np.full((d, d), 1 / 9) + (1 / 5 - 1 / 9) * np.eye(d)
    return mixing @ moment @ mixing.T, mixing.sum(axis=1) / 3, mixing


def _half(K0: Array, mean: Array) -> Array:
    """E (x − ½1)(x − ½1)ᵀ term by term."""
    d = len(mean)
    return np.array([[K0[i, j] - (mean[i] + mean[j]) / 2 + 0.25 for j in range(d)] for i in range(d)])


def _model(rng: np.random.Generator, k: int, d: int) -> tuple[Array, Array]:
    J = first_differences(k)
    return J @ rng.normal(size=(k, d)), J


def _errors(name: str, A: Array, b: Array, truth: Array) -> Array:
    """Squared error per feature (N,)."""
    square: Array = ((attacks.estimate(name, A, b).values - truth) ** 2).mean(axis=1)
    return square


def _check(errors: Array, closed: float) -> None:
    assert abs(errors.mean() - closed) < SIGMAS * errors.std() / np.sqrt(len(errors)) + 1e-12


# -- RVG Theorem 2 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d"), [(2, 2), (3, 5), (6, 5), (6, 9), (4, 1)])
def test_closed_form_against_monte_carlo(k: int, d: int) -> None:
    rng = np.random.default_rng(k * 10 + d)
    A, _ = _model(rng, k, d)
    K0, mean, mixing = _population(d, seed=d)
    x = rng.random((MANY, d)) ** 2 @ mixing.T
    for name, K in {"ls": K0, "half_star": _half(K0, mean)}.items():
        _check(_errors(name, A, x @ A.T, x), theory.nearest_solution_mse(A, K))


@pytest.mark.parametrize("name", CENTERS)
def test_on_a_finite_population_the_closed_form_is_the_measurement(name: str) -> None:
    rng = np.random.default_rng(7)
    x, (A, _) = _features(rng, 300, 8), _model(rng, 4, 8)
    A[2] = A[0] + A[1]  # any rank
    K = theory.second_moment(x, CENTERS[name])
    square = (attacks.estimate(name, A, x @ A.T).values - x) ** 2
    assert theory.nearest_solution_mse(A, K) == pytest.approx(square.mean(), rel=1e-10)
    np.testing.assert_allclose(theory.nearest_solution_column_mse(A, K), square.mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_what_the_equations_determine_costs_exactly_nothing(seed: int) -> None:
    """The difference of Tr K and Tr(P K) is rounding: beside an exact recovery it would be called a
    disagreement.
    """
    rng = np.random.default_rng(seed)
    A, x = rng.normal(size=(5, 3)), rng.random((40, 3))
    assert theory.nearest_solution_mse(A, theory.second_moment(x, 0.0)) == 0.0
    assert not theory.nearest_solution_column_mse(A, theory.second_moment(x, 0.0)).any()


def test_mean_star_has_the_covariance() -> None:
    rng = np.random.default_rng(8)
    x, (A, _) = _features(rng, 200, 6), _model(rng, 3, 6)
    mean = x.mean(axis=0)
    square = (attacks.estimate("mean_star", A, x @ A.T, moments=Moments(mean)).values - x) ** 2
    closed = theory.nearest_solution_mse(A, theory.second_moment(x, mean))
    assert closed == pytest.approx(square.mean(), rel=1e-10)


@pytest.mark.parametrize("equations", [1, 3, 5, 7])
def test_bounds_hold_for_every_model_and_are_attained(equations: int) -> None:
    rng = np.random.default_rng(equations)
    x = _features(rng, 400, 5)
    K = theory.second_moment(x, 0.5)
    bounds = theory.bounds_before_training(K, equations)
    values = [theory.nearest_solution_mse(rng.normal(size=(equations, 5)) ** 3, K) for _ in range(200)]
    assert bounds.lower - 1e-12 <= min(values)
    assert max(values) <= bounds.upper + 1e-12
    _, vectors = np.linalg.eigh(K)
    for bound, worst in ((bounds.lower, vectors[:, ::-1]), (bounds.upper, vectors)):
        assert theory.nearest_solution_mse(worst.T[:equations], K) == pytest.approx(bound, abs=1e-12)


def test_the_lower_bounds_through_the_covariance_hold_for_every_center() -> None:
    rng = np.random.default_rng(2)
    x, (A, _) = _features(rng, 300, 7), _model(rng, 4, 7)
    K_mean = theory.second_moment(x, x.mean(axis=0))
    after, before = theory.nearest_solution_mse(A, K_mean), theory.weak_lower_bound(K_mean, 3)
    assert before <= after
    for center in (0.0, 0.5, rng.random(7)):
        assert after <= theory.nearest_solution_mse(A, theory.second_moment(x, center)) + 1e-12


def test_before_training_a_lower_rank_breaks_the_upper_bound_but_not_the_lower() -> None:
    """Printed without the assumption of full rank, Theorem 2's upper bound is false."""
    x = np.random.default_rng(0).random((500, 4))
    K = theory.second_moment(x, 0.0)
    A = np.vstack([np.linalg.eigh(K)[1][:, 0]] * 2)  # two equations that say the same
    bounds, closed = theory.bounds_before_training(K, 2), theory.nearest_solution_mse(A, K)
    measured = _errors("ls", A, x @ A.T, x).mean()
    assert closed == pytest.approx(measured)
    assert bounds.lower < measured
    assert measured > bounds.upper + 0.01


def test_the_bounds_do_not_cover_other_estimators() -> None:
    """A = (1, 2), x uniform on {0, 1}²: half* is bounded by 1/8, RCC2 reaches 9/80 (brute force)."""
    A, x = np.array([[1.0, 2.0]]), np.array([[i, j] for i in (0, 1) for j in (0, 1)], float)
    bound = theory.bounds_before_training(theory.second_moment(x, 0.5), 1).lower
    closed = theory.nearest_solution_mse(A, theory.second_moment(x, 0.5))
    rcc2 = np.mean([(_nearest_in_box(A, A @ row) - row) ** 2 for row in x])
    bound_mean = theory.nearest_solution_mse(A, theory.second_moment(x, x.mean(axis=0)))
    assert (bound, closed, bound_mean) == pytest.approx((0.125, 0.125, 0.125))
    assert rcc2 == pytest.approx(9 / 80, abs=1e-6)
    assert rcc2 < bound


def _nearest_in_box(A: Array, b: Array) -> Array:
    """The point of {A x = b} ∩ box nearest to ½·1, the equation weighted by 1e5."""
    d = A.shape[1]
    found = lsq_linear(np.vstack([1e5 * A, np.eye(d)]), np.concatenate([1e5 * b, np.full(d, 0.5)]), (0, 1))
    return np.asarray(found.x)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_1_holds_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, (A, _) = _features(rng, 25, 5), _model(rng, 3, 5)
    rcc2 = np.array([_nearest_in_box(A, A @ row) for row in x])
    norm = {n: np.sqrt(5 * _errors(n, A, x @ A.T, x)) for n in ("half_star", "half")}
    assert theory.order_violations(norm["half_star"], norm["half"]) == 0
    assert theory.order_violations(np.linalg.norm(rcc2 - x, axis=1), norm["half_star"], slack=1e-4) == 0
    assert theory.order_violations(norm["half"], norm["half_star"]) == 25


def test_reflection_costs_both_estimators_the_same() -> None:
    """Training on 1 − x: the scores are those of A(1 − x), the adversary still estimates x."""
    rng = np.random.default_rng(3)
    x, (A, _) = _features(rng, 200, 6), _model(rng, 4, 6)
    K_half = theory.second_moment(x, 0.5)
    gain = theory.reflection_gain(A, K_half)
    gamma = np.linalg.eigvalsh(K_half)[::-1]
    assert gain <= 4 * gamma[:3].sum() / 6
    for name in CENTERS:
        plain, defended = (_errors(name, A, y @ A.T, x).mean() for y in (x, 1 - x))
        assert defended - plain == pytest.approx(gain, rel=1e-10)


# -- RVG Theorems 3 and 4 ------------------------------------------------------------------------------


def test_theorem_3() -> None:
    rng = np.random.default_rng(4)
    x, (A, _) = _features(rng, 300, 5), _model(rng, 4, 5)
    K0 = theory.second_moment(x, 0.0)
    best = distortion.worst_transform(A, K0)
    np.testing.assert_allclose(best.matrix @ best.matrix.T, np.eye(5), atol=1e-12)
    for H in (best.matrix, -np.eye(5), np.eye(5), ortho_group.rvs(5, random_state=1)):
        measured = _errors("ls", A @ H.T, x @ A.T, x).mean()
        assert distortion.transformed_ls_mse(A, K0, H) == pytest.approx(measured, rel=1e-10)
        assert measured <= best.mse + 1e-12
    assert _errors("ls", A @ best.matrix.T, x @ A.T, x).mean() == pytest.approx(best.mse, rel=1e-10)
    assert best.mse * 5 != pytest.approx(best.mse, rel=0.5)  # the paper drops the 1/d


def test_theorem_3_is_the_maximum_over_both_components() -> None:
    K0 = theory.second_moment(_features(np.random.default_rng(5), 100, 3), 0.0)
    A = np.random.default_rng(6).normal(size=(2, 3))
    best = distortion.worst_transform(A, K0).mse
    flip = np.diag([-1.0, 1, 1])
    found = [
        distortion.transformed_ls_mse(A, K0, H @ sign)
        for H in ortho_group.rvs(3, size=4000, random_state=2)
        for sign in (np.eye(3), flip)
    ]
    assert max(found) <= best + 1e-12
    assert max(found) > 0.98 * best


@pytest.mark.parametrize("name", CENTERS)
def test_theorem_4(name: str) -> None:
    rng = np.random.default_rng(9)
    (A, J), x = _model(rng, 4, 6), _features(rng, MANY, 6)
    best = distortion.best_noise(A, J, power=2.0)
    plain = theory.nearest_solution_mse(A, theory.second_moment(x, CENTERS[name]))
    L = rng.normal(size=(4, 4))
    S = 2.0 * L @ L.T / np.trace(L @ L.T)
    noise = rng.multivariate_normal(np.zeros(4), S, size=MANY)
    signs = rng.choice([-1.0, 1.0], size=(MANY, 1))
    along = np.sqrt(2.0) * signs * best.direction
    for n, gain in ((noise, distortion.noise_gain(A, J, S)), (along, best.gain)):
        errors = _errors(name, A, (x @ A.T) + n @ J.T, x)
        _check(errors, plain + gain)
        assert gain <= best.gain + 1e-12
    assert distortion.noise_gain(A, J, 2.0 * np.outer(best.direction, best.direction)) == pytest.approx(
        best.gain
    )


# -- VAR -----------------------------------------------------------------------------------------------


def test_agnostic_closed_forms() -> None:
    rng = np.random.default_rng(10)
    for name, (k, d) in {"ls": (6, 3), "half_star": (3, 6)}.items():
        (A, J), x = _model(rng, k, d), _features(rng, 2000, d)
        miss = rng.normal(size=(2000, k)) ** 2 @ J.T * 0.1  # biased and skewed
        K, K_half = miss.T @ miss / 2000, theory.second_moment(x, 0.5)
        measured = _errors(name, A, x @ A.T + miss, x).mean()
        assert agnostic_half_star_mse(A, K_half, K) == pytest.approx(measured, rel=1e-9)
        if name == "ls":
            assert agnostic_ls_mse(A, K) == pytest.approx(measured, rel=1e-9)


def test_clipping_is_not_what_the_agnostic_forms_describe() -> None:
    """The paper's curves clip: a clipped estimate is far better than (21) says."""
    rng = np.random.default_rng(11)
    (A, J), x = _model(rng, 3, 4), _features(rng, 2000, 4)
    miss = rng.normal(size=(2000, 3)) @ J.T
    closed = agnostic_half_star_mse(A, theory.second_moment(x, 0.5), miss.T @ miss / 2000)
    values = attacks.estimate("half_star", A, x @ A.T + miss).values
    assert closed == pytest.approx(((values - x) ** 2).mean(), rel=1e-9)
    assert ((np.clip(values, 0, 1) - x) ** 2).mean() < 0.8 * closed


@pytest.mark.parametrize("seed", range(3))
def test_rotated_parameters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for k, d in ((4, 6), (6, 3)):
        (A, _), x = _model(rng, k, d), _features(rng, 200, d)
        R = ortho_group.rvs(d, random_state=seed)
        K0, mean = theory.second_moment(x, 0.0), x.mean(axis=0)
        name = "half_star" if d >= k else "ls"
        measured = _errors(name, A @ R, x @ A.T, x).mean()
        closed = (
            distortion.rotated_half_star_mse(A, K0, mean, R) if d >= k else distortion.rotated_ls_mse(K0, R)
        )
        assert closed == pytest.approx(measured, rel=1e-9)
    assert distortion.rotated_half_star_mse(A, K0, mean, np.eye(3)) == pytest.approx(0.0, abs=1e-12)


def test_the_gradient_by_finite_differences_and_not_as_printed() -> None:
    rng = np.random.default_rng(12)
    (A, _), x = _model(rng, 4, 5), _features(rng, 100, 5)
    K0, mean, R = theory.second_moment(x, 0.0), x.mean(axis=0), rng.normal(size=(5, 5))
    numeric = np.empty((5, 5))
    for i, j in np.ndindex(5, 5):
        step = np.zeros((5, 5))
        step[i, j] = 1e-6
        above, below = (distortion.rotated_half_star_mse(A, K0, mean, R + s) for s in (step, -step))
        numeric[i, j] = -(above - below) / 2e-6  # the function that is minimised is minus the MSE
    gradient = distortion.rotated_half_star_gradient(A, K0, mean, R)
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    assert np.abs(-gradient - numeric).max() > 0.05  # VAR (42) as printed


def test_one_feature_with_believed_parameters() -> None:
    rng = np.random.default_rng(13)
    (A, J), x = _model(rng, 5, 1), rng.random((100, 1))
    believed = A + J @ rng.normal(size=(5, 1))
    measured = _errors("ls", believed, x @ A.T, x).mean()
    assert distortion.single_feature_mse(float((x**2).mean()), A, believed) == pytest.approx(
        measured, rel=1e-9
    )


def test_two_classes_with_believed_parameters() -> None:
    rng = np.random.default_rng(14)
    (A, J), x = _model(rng, 2, 4), _features(rng, 100, 4)
    K0, mean = theory.second_moment(x, 0.0), x.mean(axis=0)
    for believed in (A, A + 0.3 * J @ rng.normal(size=(2, 4)), -A):
        measured = _errors("half_star", believed, x @ A.T, x).mean()
        assert distortion.two_class_half_star_mse(A, K0, mean, believed) == pytest.approx(measured, rel=1e-9)
    plain = theory.nearest_solution_mse(A, theory.second_moment(x, 0.5))
    assert distortion.two_class_half_star_mse(A, K0, mean, A) == pytest.approx(plain)


def test_a_null_space_is_all_that_is_lost() -> None:
    """Independent route to Theorem 2: project the deviation on an explicit basis of the null space."""
    rng = np.random.default_rng(15)
    x, (A, _) = _features(rng, 50, 7), _model(rng, 4, 7)
    W = null_space(A)
    lost = ((x - 0.5) @ W @ W.T) ** 2
    K = theory.second_moment(x, 0.5)
    np.testing.assert_allclose(theory.nearest_solution_column_mse(A, K), lost.mean(axis=0), atol=1e-12)
