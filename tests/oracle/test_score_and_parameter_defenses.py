"""The LR papers' defences against brute force, Monte-Carlo, other programs and the attacks themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

import attacks
from defenses._orthonormal import Drawn, drawn_matrix
from defenses._rotation import RotationProblem, _on_level, best_rotation
from defenses.distorted_parameters import DistortedParameters
from defenses.scheme_1 import Scheme1
from defenses.scheme_2 import Scheme2
from defenses.scheme_3 import Scheme3
from defenses.transform_inputs import TransformInputs
from defenses.transform_parameters import TransformParameters
from vfl.defense import Context, Defense
from vfl.errors import ConfigError
from vfl.numerics.ball_program import largest_on_ball, largest_ratio
from vfl.numerics.distortion import distorted_two_classes, distortion, largest_distortion
from vfl.numerics.linear_system import first_differences, row_projector
from vfl.types import Array, Exchange, Owner, Phase

NOTHING = np.zeros(0, np.int32)


def _context(defense: Defense, weight: Array, x: Array | None = None, secret: bytes = b"secret") -> Context:
    owner = Owner("passive", x, parameters=lambda: {"weight": weight})
    state = defense.fit(owner, np.random.default_rng(1))
    return Context(owner, Exchange("run", Phase.DISCLOSE, 1, 0), NOTHING, state, "hook", 0, secret)


def _system(k: int, d: int, seed: int = 0, n: int = 4000) -> tuple[Array, Array]:
    """Weights (k, d) and correlated rows in the box (n, d)."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.beta(2, 3, (n, d)) @ (np.eye(d) + 0.2 * rng.random((d, d))) / 1.3, 0, 1)
    return 2 * rng.normal(size=(k, d)), x


def _mse(name: str, disclosed: Array, W: Array, x: Array, log_c: Array | None = None) -> float:
    """What attack ``name`` errs by when it believes in ``disclosed`` and the scores come from W, or are ``log_c``."""
    J = first_differences(len(W))
    b = x @ (J @ W).T if log_c is None else log_c @ J.T
    return float(np.mean((attacks.estimate(name, J @ disclosed, b).values - x) ** 2))


def _disclosed(defense: Defense, W: Array, x: Array) -> Array:
    released = defense.on_parameters({"weight": W}, _context(defense, W, x))
    assert released is not None
    return released["weight"]


# -- the best direction and schemes 1, 2, 3 -----------------------------------------------------------


@pytest.mark.parametrize("sense", ["plus", "minus"])
@pytest.mark.parametrize(("k", "d"), [(2, 3), (4, 6), (6, 3)])
def test_no_direction_of_equal_power_costs_least_squares_more(k: int, d: int, sense: Any) -> None:
    """RVG Theorem 4 by trial: shift all logits by unit vectors, attack, compare with v₁."""
    W, x = _system(k, d)
    v = _context(Scheme1(sense=sense), W).state["direction"] * (1 if sense == "plus" else -1)
    np.testing.assert_allclose([np.linalg.norm(v), v.sum()], [1, 0], atol=1e-12)
    exact = log_softmax(x @ W.T, axis=1)
    for name in ("ls", "half_star"):
        best = _mse(name, W, W, x, exact + v) - _mse(name, W, W, x, exact)
        others = np.random.default_rng(2).normal(size=(200, k))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        gains = [_mse(name, W, W, x[:500], exact[:500] + u) for u in others]
        assert max(gains) <= best + _mse(name, W, W, x[:500], exact[:500]) + 1e-9
        J = first_differences(k)
        sigma = np.linalg.norm(np.linalg.pinv(J @ W) @ J, 2)
        np.testing.assert_allclose(best, sigma**2 / d, rtol=1e-6)


def test_the_sign_of_the_direction_is_settled_where_sizes_tie() -> None:
    """K = 2: v₁ is (1, −1)/√2 whatever the weights, so rounding must not choose its sign."""
    for seed in range(20):
        W, _ = _system(2, 3, seed, n=10)
        np.testing.assert_allclose(
            _context(Scheme1(), W).state["direction"], [0.5**0.5, -(0.5**0.5)], atol=1e-12
        )


def _apply(defense: Defense, log_c: Array, W: Array) -> Array:
    return defense.on_scores(log_c, _context(defense, W))


@pytest.mark.parametrize("sense", ["plus", "minus"])
@pytest.mark.parametrize("alpha", [0.3, 4.0])
def test_scheme_1_is_its_definition(alpha: float, sense: Any) -> None:
    W, x = _system(4, 3, n=50)
    z = x @ W.T
    v = _context(Scheme1(), W).state["direction"] * (1 if sense == "plus" else -1)
    after = _apply(Scheme1(alpha=alpha, sense=sense), log_softmax(z, axis=1), W)
    for row, log_c in zip(z, after, strict=True):
        noise = v.copy()
        noise[row.argmax()] = v.max()
        noise *= np.sqrt(alpha) / np.linalg.norm(noise)
        np.testing.assert_allclose(log_c, log_softmax(row + noise), atol=1e-12)
    np.testing.assert_array_equal(after.argmax(axis=1), z.argmax(axis=1))


@pytest.mark.parametrize("sense", ["plus", "minus"])
@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_scheme_2_is_its_definition(margin: float, sense: Any) -> None:
    W, x = _system(4, 3, n=50)
    z = x @ W.T
    v = _context(Scheme2(), W).state["direction"] * (1 if sense == "plus" else -1)
    after = _apply(Scheme2(alpha=9.0, margin=margin, sense=sense), log_softmax(z, axis=1), W)
    for row, log_c in zip(z, after, strict=True):
        moved = row + 3 * v
        moved[row.argmax()] = moved.max() + margin
        np.testing.assert_allclose(log_c, log_softmax(moved), atol=1e-12)
    first = after.argmax(axis=1) == z.argmax(axis=1)
    if margin > 0:
        assert first.all()
    elif sense == "plus":  # exact ties: the first maximiser is often another class
        assert 0.2 < first.mean() < 0.9


def test_the_sense_matters_for_two_classes() -> None:
    """K = 2: one sign of scheme 1 leaves the scores of one whole class as they are (MATH: raised = all equal)."""
    W, x = _system(2, 3, n=200)
    W = W - np.outer([0, 1], W[1] - W[0]) / 2  # both classes occur
    exact = log_softmax((x - x.mean(axis=0)) @ W.T, axis=1)
    label = exact.argmax(axis=1)
    untouched = {}
    for sense in ("plus", "minus"):
        after = _apply(Scheme1(sense=sense), exact, W)
        same = np.abs(after - exact).max(axis=1) < 1e-12
        untouched[sense] = {int(c) for c in np.unique(label[same])}
        assert all(same[label == c].all() for c in untouched[sense])
    assert untouched == {"plus": {1}, "minus": {0}}


@pytest.mark.parametrize("scheme", [Scheme1(alpha=2.0), Scheme2(alpha=2.0), Scheme2(alpha=2.0, margin=0.5)])
def test_tied_labels_stay_tied(scheme: Defense) -> None:
    W, _ = _system(4, 3, n=10)
    after = _apply(scheme, np.log([[0.3, 0.1, 0.3, 0.3]]), W)
    assert after[0, 0] == after[0, 2] == after[0, 3] == after.max()
    assert after[0, 1] <= after.max()


def test_scheme_3_draws_logits_together() -> None:
    z = np.array([[2.0, 0.0, -1.0]])
    after = Scheme3(alpha=0.25).on_scores(log_softmax(z, axis=1), _context(Scheme3(), np.eye(3)))
    np.testing.assert_allclose(np.diff(after), 0.75 * np.diff(z), atol=1e-12)
    np.testing.assert_allclose(after, log_softmax(0.75 * z + 0.25), atol=1e-12)


def test_a_scheme_without_weights_or_without_a_direction_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="a scheme along v₁ at 'hub': it needs the passive parties' weights"
    ):
        Scheme1().fit(Owner("hub"), np.random.default_rng(0))
    with pytest.raises(ConfigError, match="the disclosed weights are the same for every class"):
        _context(Scheme2(), np.ones((3, 2)))


# -- orthonormal transforms ---------------------------------------------------------------------------


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
    W, x = _system(4, 3, n=100)
    defense = TransformInputs(kind=kind)
    context = _context(defense, W, x)
    moved, H = defense.on_inputs(x, context), context.state["matrix"]
    np.testing.assert_allclose(moved, (H @ x.T).T, atol=1e-12)
    np.testing.assert_allclose(moved @ (W @ H.T).T, x @ W.T, atol=1e-12)


def test_one_minus_x_costs_least_squares_and_half_star_alike() -> None:
    """The loss (4/d)Tr(P K_½) measured: attack the model of 1 − x, believing in x (RVG §VII-A)."""
    W, x = _system(4, 6)
    P = row_projector(first_differences(4) @ W)
    K = (x - 0.5).T @ (x - 0.5) / len(x)
    moved = TransformInputs().on_inputs(x, _context(TransformInputs(), W, x))
    np.testing.assert_allclose(moved, 1 - x)
    A = first_differences(4) @ W
    for name in ("ls", "half_star"):
        before = attacks.estimate(name, A, x @ A.T).values
        after = attacks.estimate(name, -A, moved @ -A.T).values  # the trained weights are −W; bias known
        gain = np.mean((after - x) ** 2) - np.mean((before - x) ** 2)
        np.testing.assert_allclose(gain, 4 / 6 * np.trace(P @ K), rtol=1e-9)


@pytest.mark.parametrize(("k", "d"), [(2, 4), (4, 4), (5, 3), (4, 7)])
def test_no_orthonormal_matrix_misleads_least_squares_more_than_h_star(k: int, d: int) -> None:
    """RVG Theorem 3 against 300 random matrices and a local search from the best of them."""
    W, x = _system(k, d, n=1500)
    best = _mse("ls", _disclosed(TransformParameters(), W, x), W, x)
    rng = np.random.default_rng(0)
    tried = [drawn_matrix("random", d, rng) for _ in range(300)] + [-np.eye(d)]

    def mse(H: Array) -> float:
        return _mse("ls", W @ H.T, W, x)

    assert max(map(mse, tried)) <= best + 1e-12
    start = max(tried, key=mse)

    def turned(s: Array) -> float:
        S = s.reshape(d, d)
        return -mse(start @ np.linalg.solve(np.eye(d) + (S - S.T), np.eye(d) - (S - S.T)))  # Cayley

    found = minimize(turned, np.zeros(d * d), method="L-BFGS-B", options={"maxiter": 30})
    assert -found.fun <= best + 1e-9


@pytest.mark.parametrize("kind", ["negation", "random", "permutation", "signs", "least_squares"])
def test_disclosed_transforms_keep_lengths_and_the_bias(kind: Any) -> None:
    W, x = _system(4, 5, n=100)
    defense = TransformParameters(kind=kind)
    bias = np.arange(4.0)
    released = defense.on_parameters({"weight": W, "bias": bias}, _context(defense, W, x))
    np.testing.assert_allclose(released["weight"] @ released["weight"].T, W @ W.T, atol=1e-9)
    np.testing.assert_array_equal(released["bias"], bias)
    assert np.abs(released["weight"] - W).max() > 0.1


# -- quadratics on a ball -----------------------------------------------------------------------------


def _ball(d: int, radius: float, rng: np.random.Generator, n: int = 20_000) -> Array:
    """Points of the ball, half of them on its surface."""
    u = rng.normal(size=(n, d))
    u *= radius / np.linalg.norm(u, axis=1, keepdims=True)
    u[::2] *= rng.random((len(u[::2]), 1))
    return u


@pytest.mark.parametrize("case", ["any", "concave", "hard", "zero", "linear"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_maximum_on_a_ball_is_global(d: int, case: str) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        B, g, radius = rng.normal(size=(d, d)), rng.normal(size=d), rng.random() + 0.1
        B = -B @ B.T if case == "concave" else (B + B.T) * (case not in ("zero", "linear"))
        if case == "hard":  # nothing of g along the top direction
            top = np.linalg.eigh(B)[1][:, -1]
            g = g - top * (top @ g)
        g = g * (case != "zero")
        y = largest_on_ball(B, g, radius)
        points = _ball(d, radius, rng)
        values = np.einsum("ni,ij,nj->n", points, B, points) + 2 * points @ g
        assert np.linalg.norm(y) <= radius * (1 + 1e-9)
        assert values.max() <= y @ B @ y + 2 * g @ y + 1e-9


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_largest_ratio_is_global(d: int) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        B, g, c = rng.normal(size=(d, d)), rng.normal(size=d), rng.normal()
        B, C = B + B.T, np.diag(rng.random(d) + 0.5)
        center = rng.normal(size=d) + 2 * np.eye(d)[0]
        radius = 0.8 * float(np.linalg.norm(center))
        x = largest_ratio(B, g, c, C, center=center, radius=radius)
        points = center + _ball(d, radius, rng)

        def ratio(p: Array, B: Array = B, g: Array = g, c: float = c, C: Array = C) -> Array:
            top = np.einsum("ni,ij,nj->n", p, B, p) + 2 * p @ g + c
            return np.asarray(top / np.einsum("ni,ij,nj->n", p, C, p))

        assert np.linalg.norm(x - center) <= radius * (1 + 1e-9)
        assert ratio(points).max() <= ratio(x[None])[0] + 1e-9


# -- distorted parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.3, 0.8])
def test_one_feature_two_classes_is_the_closed_form(share: float) -> None:
    """VAR case iii, k = 2: w ± √ε(1, −1), E[x²](2√ε/(|w₁ − w₂| − 2√ε))²; the range ends at (w₁ − w₂)²/4."""
    W, x = _system(2, 1)
    gap = abs(float(W[0, 0] - W[1, 0]))
    np.testing.assert_allclose(largest_distortion(W), gap**2 / 4)
    epsilon = share * gap**2 / 4
    disclosed = _disclosed(DistortedParameters(epsilon=epsilon), W, x)
    toward = np.sign(W[1] - W[0]) * np.sqrt(epsilon) * np.array([1.0, -1.0])
    np.testing.assert_allclose(disclosed[:, 0], W[:, 0] + toward, atol=1e-9)
    side = 2 * np.sqrt(epsilon)
    expected = np.mean(x**2) * (side / (gap - side)) ** 2
    np.testing.assert_allclose(_mse("half_star", disclosed, W, x), expected, rtol=1e-6)


def _random_on_level(W: Array, epsilon: float, rng: np.random.Generator, n: int) -> Array:
    D = rng.normal(size=(n, *W.shape))
    D *= np.sqrt(epsilon * W.size) / np.linalg.norm(D, axis=(1, 2), keepdims=True)
    return np.asarray(W + D)


@pytest.mark.parametrize("share", [0.02, 0.5])
@pytest.mark.parametrize(("k", "d"), [(3, 1), (5, 1), (2, 2), (2, 5)])
def test_no_disclosure_at_the_same_distortion_misleads_more(k: int, d: int, share: float) -> None:
    """VAR cases iii and iv against 2,000 random disclosures at the same g, and a local search from the best."""
    W, x = _system(k, d, n=300)
    epsilon = share * largest_distortion(W)
    disclosed = _disclosed(DistortedParameters(epsilon=epsilon), W, x)
    np.testing.assert_allclose(distortion(W, disclosed), epsilon, rtol=1e-9)
    best = _mse("half_star", disclosed, W, x)
    rng = np.random.default_rng(0)
    tried = _random_on_level(W, epsilon, rng, 2000)
    errors = [_mse("half_star", V, W, x) for V in tried]
    assert max(errors) <= best + 1e-12

    def moved(direction: Array) -> float:
        D = direction.reshape(W.shape)
        return -_mse("half_star", W + D * np.sqrt(epsilon * W.size) / np.linalg.norm(D), W, x)

    found = minimize(moved, (tried[np.argmax(errors)] - W).ravel(), method="Nelder-Mead")
    assert -found.fun <= best + 1e-9
    assert best < 1.01 * -found.fun  # and the search comes near: what it stays below is no accident


def test_the_constraint_of_two_classes_is_a_ball() -> None:
    """G = ε reaches every Aₙ with ‖Aₙ − A‖ ≤ 2√(dε) and none beyond (VAR §V iv)."""
    W, x = _system(2, 4, n=300)
    epsilon = 0.4 * largest_distortion(W)
    rng = np.random.default_rng(0)
    reached = np.diff(_random_on_level(W, epsilon, rng, 5000), axis=1)[:, 0] - (W[1] - W[0])
    lengths = np.linalg.norm(reached, axis=1)
    assert 0.9 < lengths.max() / (2 * np.sqrt(4 * epsilon)) <= 1 + 1e-12
    moved = distorted_two_classes(W, x.T @ x / len(x), x.mean(axis=0), epsilon)
    assert np.linalg.norm((moved - W)[1] - (moved - W)[0]) <= 2 * np.sqrt(4 * epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("share", [0.002, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(("k", "d"), [(4, 2), (5, 3), (3, 5)])
def test_rotations_beat_thousands_of_random_ones_at_the_same_distortion(k: int, d: int, share: float) -> None:
    """VAR cases ii (4, 2), (5, 3) and i (3, 5). Near d = 2 the level is a few points: equality up to rounding."""
    W, x = _system(k, d)
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
    np.testing.assert_allclose(_mse("half_star", W @ R, W, x), problem.mse(R), atol=1e-9)


def test_the_gradients_of_the_rotation_are_those_of_its_functions() -> None:
    """By finite differences: VAR (42) has the opposite sign of the first, which would help the adversary."""
    W, x = _system(4, 5, n=300)
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
    W, x = _system(5, 3)
    K0, mean = x.T @ x / len(x), x.mean(axis=0)
    problem = RotationProblem(W, K0, mean, 0.999 * largest_distortion(W))
    R = best_rotation(problem, 2, np.random.default_rng(1))
    assert np.linalg.det(R) < 0
    assert problem.mse(R) > 0.99 * problem.mse(-np.eye(3))
    end = RotationProblem(W, K0, mean, largest_distortion(W))
    assert end.excess(-np.eye(3)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (4, 1), (2, 3), (4, 3)])
def test_an_inadmissible_distortion_is_refused_with_the_range(k: int, d: int) -> None:
    W, x = _system(k, d, n=100)
    end = largest_distortion(W)
    sign = "<=" if k > 2 and d > 1 else "<"
    with pytest.raises(
        ConfigError, match=rf"epsilon = .* these weights admit 0 < epsilon {sign} {end:.6g} only"
    ):
        _disclosed(DistortedParameters(epsilon=1.01 * end), W, x)
    assert np.isfinite(_disclosed(DistortedParameters(epsilon=0.99 * end), W, x)).all()


def test_two_classes_are_rotated_where_asked_and_mislead_less_than_the_global_optimum() -> None:
    """VAR's Fig. 9: W R is one of the Wₙ that case iv ranges over."""
    W, x = _system(2, 4)
    epsilon = 0.5 * largest_distortion(W)
    turned = _disclosed(DistortedParameters(epsilon=epsilon, rotate=True), W, x)
    np.testing.assert_allclose(turned @ turned.T, W @ W.T, atol=1e-9)
    assert distortion(W, turned) == pytest.approx(epsilon)
    free = _disclosed(DistortedParameters(epsilon=epsilon), W, x)
    assert _mse("half_star", W, W, x) < _mse("half_star", turned, W, x) <= _mse("half_star", free, W, x)
    beyond = _disclosed(DistortedParameters(epsilon=3 * largest_distortion(W), rotate=True), W, x)
    assert distortion(W, beyond) == pytest.approx(3 * largest_distortion(W))
    with pytest.raises(ConfigError, match="rotate = true, but one column has no rotations: leave it out"):
        _disclosed(DistortedParameters(epsilon=0.1, rotate=True), W[:, :1], x[:, :1])


@pytest.mark.parametrize(("k", "d"), [(2, 1), (2, 3)])
def test_a_degenerate_disclosure_is_refused(k: int, d: int) -> None:
    W, x = _system(k, d, n=100)
    with pytest.raises(ConfigError, match="leaves next to nothing of the equations"):
        _disclosed(DistortedParameters(epsilon=(1 - 1e-14) * largest_distortion(W)), W, x)


def test_beyond_the_range_the_error_is_unbounded() -> None:
    """Why it is refused: just inside, the error explodes; at k = 2, d > 1 disclosures towards 0 become legal."""
    W, x = _system(2, 3, n=300)
    end = largest_distortion(W)
    errors = [
        _mse("half_star", _disclosed(DistortedParameters(epsilon=s * end), W, x), W, x)
        for s in (0.5, 0.9, 0.999)
    ]
    assert errors[0] < errors[1] < errors[2]
    assert errors[2] > 100 * errors[0]
