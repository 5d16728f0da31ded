"""The LR papers' defences of parameters against brute force, Monte-Carlo, other programs and the attacks
themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from disclosures import context_of, disclosed_by, error_of, system
from scipy.optimize import minimize
from thinned import first

from vflens import attacks
from vflens.defenses._orthonormal import Drawn, drawn_matrix
from vflens.defenses._rotation import RotationProblem, _on_level, best_rotation
from vflens.defenses.distorted_parameters import DistortedParameters
from vflens.defenses.transform_inputs import TransformInputs
from vflens.defenses.transform_parameters import TransformParameters
from vflens.errors import ConfigError
from vflens.experiments.figures.central import train
from vflens.models.settings import Training
from vflens.numerics.linear_system import first_differences, row_projector
from vflens.numerics.theory.distortion import distorted_two_classes, largest_distortion
from vflens.types import Array

# -- orthonormal transforms ---------------------------------------------------------------------------


def distortion(W: Array, disclosed: Array) -> float:
    """G = ‖W − Wₙ‖²_F/(dk), as VAR §V defines it."""
    return float(np.sum((W - disclosed) ** 2) / W.size)


@pytest.mark.parametrize("kind", ["negation", "random", "permutation", "signs"])
def test_drawn_matrices_are_orthonormal_and_of_their_kind(kind: Drawn) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        H = drawn_matrix(kind, 6, rng)
        np.testing.assert_allclose(H.T @ H, np.eye(6), atol=1e-12)
        entries = {"negation": 6, "permutation": 6, "signs": 6, "random": 36}
        assert np.count_nonzero(H) == entries[kind]
    assert (drawn_matrix("permutation", 6, rng) >= 0).all()


def test_random_matrices_are_uniform() -> None:
    """Haar: both components alike, first column's squares have mean 1/d and E h⁴ = 3/(d(d + 2))."""
    rng = np.random.default_rng(0)
    H = np.array([drawn_matrix("random", 3, rng) for _ in range(4000)])
    signs = np.linalg.det(H)
    assert abs(signs.mean()) < 5 / np.sqrt(4000)
    np.testing.assert_allclose((H**2).mean(axis=0), 1 / 3, atol=0.03)
    np.testing.assert_allclose((H**4).mean(axis=0), 3 / 15, atol=0.03)


@pytest.mark.parametrize("kind", ["negation", "random", "permutation", "signs"])
def test_training_on_transformed_inputs_gives_the_adversary_the_transformed_rows(kind: Any) -> None:
    """W Hᵀ at H x: the same logits, so LS finds P-parts of H x."""
    W, x = system(4, 3, n=100)
    defense = TransformInputs(kind=kind)
    context = context_of(defense, W, x)
    moved, H = defense.on_inputs(x, context), context.state["matrix"]
    np.testing.assert_allclose(moved, (H @ x.T).T, atol=1e-12)
    np.testing.assert_allclose(moved @ (W @ H.T).T, x @ W.T, atol=1e-12)


def test_one_minus_x_costs_least_squares_and_half_star_alike() -> None:
    """The loss (4/d)Tr(P K_½) measured: attack the model of 1 − x, believing in x (RVG §VII-A)."""
    W, x = system(4, 6)
    P = row_projector(first_differences(4) @ W)
    K = (x - 0.5).T @ (x - 0.5) / len(x)
    moved = TransformInputs().on_inputs(x, context_of(TransformInputs(), W, x))
    np.testing.assert_allclose(moved, 1 - x)
    A = first_differences(4) @ W
    for name in ("ls", "half_star"):
        before = attacks.estimate(name, A, x @ A.T).values
        after = attacks.estimate(name, -A, moved @ -A.T).values  # the trained weights are −W; bias known
        gain = np.mean((after - x) ** 2) - np.mean((before - x) ** 2)
        np.testing.assert_allclose(gain, 4 / 6 * np.trace(P @ K), rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "sgd", "adam"),
    [
        ("negation", True, True),
        ("permutation", True, True),
        ("signs", True, True),
        ("random", True, False),
        ("complement", False, False),
    ],
)
def test_which_transforms_keep_the_scores_before_training_ends(kind: Any, sgd: bool, adam: bool) -> None:
    W, x = system(3, 4, n=200)
    labels = (x @ W.T).argmax(axis=1)
    defense = TransformInputs(kind=kind)
    moved = defense.on_inputs(x, context_of(defense, W, x))
    for optimizer, kept in (("sgd", sgd), ("adam", adam)):
        settings = Training(optimizer=optimizer, epochs=5, batch_size=50, penalise_bias=False)
        scores = [
            train(inputs, labels, 3, settings, np.random.default_rng).log_scores(inputs)
            for inputs in (x, moved)
        ]
        assert (np.abs(scores[0] - scores[1]).max() < 1e-12) == kept


@pytest.mark.parametrize(("k", "d"), [(2, 4), (4, 4), (5, 3), (4, 7)])
def test_no_orthonormal_matrix_misleads_least_squares_more_than_h_star(k: int, d: int) -> None:
    """RVG Theorem 3 against 300 random matrices and a local search from the best of them."""
    W, x = system(k, d, n=1500)
    best = error_of("ls", disclosed_by(TransformParameters(), W, x), W, x)
    rng = np.random.default_rng(0)
    tried = [drawn_matrix("random", d, rng) for _ in range(300)] + [-np.eye(d)]

    def mse(H: Array) -> float:
        return error_of("ls", W @ H.T, W, x)

    assert max(map(mse, tried)) <= best + 1e-12
    start = max(tried, key=mse)

    def turned(s: Array) -> float:
        S = s.reshape(d, d)
        return -mse(start @ np.linalg.solve(np.eye(d) + (S - S.T), np.eye(d) - (S - S.T)))  # Cayley

    found = minimize(turned, np.zeros(d * d), method="L-BFGS-B", options={"maxiter": 30})
    assert -found.fun <= best + 1e-9


@pytest.mark.parametrize("kind", ["negation", "random", "permutation", "signs", "least_squares"])
def test_disclosed_transforms_keep_lengths_and_the_bias(kind: Any) -> None:
    W, x = system(4, 5, n=100)
    defense = TransformParameters(kind=kind)
    bias = np.arange(4.0)
    released = defense.on_parameters({"weight": W, "bias": bias}, context_of(defense, W, x))
    np.testing.assert_allclose(released["weight"] @ released["weight"].T, W @ W.T, atol=1e-9)
    np.testing.assert_array_equal(released["bias"], bias)
    assert np.abs(released["weight"] - W).max() > 0.1


# -- distorted parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.3, 0.8])
def test_one_feature_two_classes_is_the_closed_form(share: float) -> None:
    """VAR case iii, k = 2: w ± √ε(1, −1), E[x²](2√ε/(|w₁ − w₂| − 2√ε))²; the range ends at (w₁ − w₂)²/4."""
    W, x = system(2, 1)
    gap = abs(float(W[0, 0] - W[1, 0]))
    np.testing.assert_allclose(largest_distortion(W), gap**2 / 4)
    epsilon = share * gap**2 / 4
    disclosed = disclosed_by(DistortedParameters(epsilon=epsilon), W, x)
    toward = np.sign(W[1] - W[0]) * np.sqrt(epsilon) * np.array([1.0, -1.0])
    np.testing.assert_allclose(disclosed[:, 0], W[:, 0] + toward, atol=1e-9)
    side = 2 * np.sqrt(epsilon)
    expected = np.mean(x**2) * (side / (gap - side)) ** 2
    np.testing.assert_allclose(error_of("half_star", disclosed, W, x), expected, rtol=1e-6)


def _random_on_level(W: Array, epsilon: float, rng: np.random.Generator, n: int) -> Array:
    D = rng.normal(size=(n, *W.shape))
    D *= np.sqrt(epsilon * W.size) / np.linalg.norm(D, axis=(1, 2), keepdims=True)
    return np.asarray(W + D)


@pytest.mark.parametrize("share", first([0.5, 0.02]))
@pytest.mark.parametrize(("k", "d"), [(3, 1), (5, 1), (2, 2), (2, 5)])
def test_no_disclosure_at_the_same_distortion_misleads_more(k: int, d: int, share: float) -> None:
    """VAR cases iii and iv against 2,000 random disclosures at the same g, and a local search."""
    W, x = system(k, d, n=300)
    epsilon = share * largest_distortion(W)
    disclosed = disclosed_by(DistortedParameters(epsilon=epsilon), W, x)
    np.testing.assert_allclose(distortion(W, disclosed), epsilon, rtol=1e-9)
    best = error_of("half_star", disclosed, W, x)
    rng = np.random.default_rng(0)
    tried = _random_on_level(W, epsilon, rng, 2000)
    errors = [error_of("half_star", V, W, x) for V in tried]
    assert max(errors) <= best + 1e-12

    def moved(direction: Array) -> float:
        D = direction.reshape(W.shape)
        return -error_of("half_star", W + D * np.sqrt(epsilon * W.size) / np.linalg.norm(D), W, x)

    found = minimize(moved, (tried[np.argmax(errors)] - W).ravel(), method="Nelder-Mead")
    assert -found.fun <= best + 1e-9
    assert best < 1.01 * -found.fun  # and the search comes near: what it stays below is no accident


def test_the_constraint_of_two_classes_is_a_ball() -> None:
    """G = ε reaches every Aₙ with ‖Aₙ − A‖ ≤ 2√(dε) and none beyond (VAR §V iv)."""
    W, x = system(2, 4, n=300)
    epsilon = 0.4 * largest_distortion(W)
    rng = np.random.default_rng(0)
    reached = np.diff(_random_on_level(W, epsilon, rng, 5000), axis=1)[:, 0] - (W[1] - W[0])
    lengths = np.linalg.norm(reached, axis=1)
    assert 0.9 < lengths.max() / (2 * np.sqrt(4 * epsilon)) <= 1 + 1e-12
    moved = distorted_two_classes(W, x.T @ x / len(x), x.mean(axis=0), epsilon)
    assert np.linalg.norm((moved - W)[1] - (moved - W)[0]) <= 2 * np.sqrt(4 * epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("share", first([0.1, 0.002, 0.5, 0.9]))
@pytest.mark.parametrize(("k", "d"), [(4, 2), (5, 3), (3, 5)])
def test_rotations_beat_thousands_of_random_ones_at_the_same_distortion(k: int, d: int, share: float) -> None:
    """VAR cases ii (4, 2), (5, 3) and i (3, 5). Near d = 2 the level is a few points: equality up to
    rounding.
    """
    W, x = system(k, d)
    K0, mean = x.T @ x / len(x), x.mean(axis=0)
    problem = RotationProblem(W, K0, mean, share * largest_distortion(W))
    R = best_rotation(problem, 2, np.random.default_rng(1))
    np.testing.assert_allclose(R.T @ R, np.eye(d), atol=1e-9)
    np.testing.assert_allclose(distortion(W, W @ R), problem.epsilon, rtol=1e-9)
    rng, errors = np.random.default_rng(0), []
    for _ in range(2000):
        base, turn = drawn_matrix("random", d, rng), rng.normal(size=(d, d))
        other = _on_level(problem, base, turn - turn.T)
        if other is not None:
            errors.append(problem.mse(other))
    assert max(errors, default=0.0) <= problem.mse(R) + 1e-9
    np.testing.assert_allclose(error_of("half_star", W @ R, W, x), problem.mse(R), atol=1e-9)


def test_the_gradients_of_the_rotation_are_those_of_its_functions() -> None:
    """By finite differences: VAR (42) has the opposite sign of the first, which would help the adversary."""
    W, x = system(4, 5, n=300)
    problem = RotationProblem(W, x.T @ x / len(x), x.mean(axis=0), 0.3)
    rng = np.random.default_rng(0)
    R, turn = drawn_matrix("random", 5, rng), rng.normal(size=(5, 5))
    V = R @ (turn - turn.T)  # a tangent direction: off the manifold the closed form is another function
    h = 1e-6

    def along(f: Any) -> float:
        from scipy.linalg import expm

        S = R.T @ V
        return float((f(R @ expm(h * S)) - f(R @ expm(-h * S))) / (2 * h))

    np.testing.assert_allclose(along(problem.mse), np.sum(problem.gradient(R) * V), rtol=1e-6)
    np.testing.assert_allclose(along(problem.excess), np.sum(problem.excess_gradient * V), rtol=1e-6)
    curved = (problem.gradient(R - h * V) - problem.gradient(R + h * V)) / (2 * h)
    np.testing.assert_allclose(problem.curvature(V), curved, atol=1e-6)


def test_both_components_are_needed() -> None:
    """−I is the best of all rotations without a constraint on LS, and for odd d it lies across from I."""
    W, x = system(5, 3)
    K0, mean = x.T @ x / len(x), x.mean(axis=0)
    problem = RotationProblem(W, K0, mean, 0.999 * largest_distortion(W))
    R = best_rotation(problem, 2, np.random.default_rng(1))
    assert np.linalg.det(R) < 0
    assert problem.mse(R) > 0.99 * problem.mse(-np.eye(3))
    end = RotationProblem(W, K0, mean, largest_distortion(W))
    assert end.excess(-np.eye(3)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (4, 1), (2, 3), (4, 3)])
def test_an_inadmissible_distortion_is_refused_with_the_range(k: int, d: int) -> None:
    W, x = system(k, d, n=100)
    end = largest_distortion(W)
    sign = "<=" if k > 2 and d > 1 else "<"
    with pytest.raises(
        ConfigError, match=rf"epsilon = .* these weights admit 0 < epsilon {sign} {end:.6g} only"
    ):
        disclosed_by(DistortedParameters(epsilon=1.01 * end), W, x)
    assert np.isfinite(disclosed_by(DistortedParameters(epsilon=0.99 * end), W, x)).all()


def test_two_classes_are_rotated_where_asked_and_mislead_less_than_the_global_optimum() -> None:
    """VAR's Fig. 9: W R is one of the Wₙ that case iv ranges over."""
    W, x = system(2, 4)
    epsilon = 0.5 * largest_distortion(W)
    turned = disclosed_by(DistortedParameters(epsilon=epsilon, rotate=True), W, x)
    np.testing.assert_allclose(turned @ turned.T, W @ W.T, atol=1e-9)
    assert distortion(W, turned) == pytest.approx(epsilon)
    free = disclosed_by(DistortedParameters(epsilon=epsilon), W, x)
    assert (
        error_of("half_star", W, W, x)
        < error_of("half_star", turned, W, x)
        <= error_of("half_star", free, W, x)
    )
    beyond = disclosed_by(DistortedParameters(epsilon=3 * largest_distortion(W), rotate=True), W, x)
    assert distortion(W, beyond) == pytest.approx(3 * largest_distortion(W))
    with pytest.raises(ConfigError, match="rotate = true, but one column has no rotations: leave it out"):
        disclosed_by(DistortedParameters(epsilon=0.1, rotate=True), W[:, :1], x[:, :1])


@pytest.mark.parametrize(("k", "d"), [(2, 1), (2, 3)])
def test_a_degenerate_disclosure_is_refused(k: int, d: int) -> None:
    W, x = system(k, d, n=100)
    with pytest.raises(ConfigError, match="leaves next to nothing of the equations"):
        disclosed_by(DistortedParameters(epsilon=(1 - 1e-14) * largest_distortion(W)), W, x)


def test_beyond_the_range_the_error_is_unbounded() -> None:
    """Just inside the limit the error explodes; at k = 2, d > 1 disclosures towards 0 become legal."""
    W, x = system(2, 3, n=300)
    end = largest_distortion(W)
    errors = [
        error_of("half_star", disclosed_by(DistortedParameters(epsilon=s * end), W, x), W, x)
        for s in (0.5, 0.9, 0.999)
    ]
    assert errors[0] < errors[1] < errors[2]
    assert errors[2] > 100 * errors[0]
