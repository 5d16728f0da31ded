"""The SVM (2) against CVXPY, its optimality conditions, and the release that keeps its classifier."""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
import pytest
from scipy.linalg import null_space

from vflens.datasets._resolve import dataset
from vflens.table_noise import svm
from vflens.table_noise.correlated import Correlated
from vflens.table_noise.preserving import check_preserved, preserving_noise, release_preserving
from vflens.table_noise.svm import SvmSolution, solve_svm
from vflens.types import Array
from vflens.verification import programs

cp: Any = cvxpy

THETA, RHO, KEY = 1.0, 1e-2, b"a test's key"


def breast_cancer() -> tuple[Array, Array]:
    """Raw features, +1 benign."""
    table = dataset("breast_cancer", {}).load()
    assert table.labels is not None
    benign = table.class_names.index("benign")
    return table.features, np.where(table.labels == benign, 1.0, -1.0)


def random_rows(seed: int, q: int = 60, p: int = 4) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(q) < 0.4, 1.0, -1.0)
    return rng.normal(size=(q, p)) * 10 ** rng.uniform(-1, 1, p) + 0.7 * y[:, None], y


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("theta", "rho"), [(1.0, 1e-2), (0.05, 1.0), (30.0, 1e-4)])
def test_svm_is_the_solution_of_the_model(seed: int, theta: float, rho: float) -> None:
    """Clarabel's tolerance, 1e-12 in the gap, leaves 1e-5 in the variables. Multipliers: the next test."""
    x, y = random_rows(seed)
    found = solve_svm(x, y, theta=theta, rho=rho)
    alpha, beta, xi = programs.svm(x, y, theta=theta, rho=rho)
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-5)
    np.testing.assert_allclose(found.beta, beta, atol=1e-5)
    np.testing.assert_allclose(found.slack, xi, atol=1e-5)


def problem_1(x: Array, y: Array, theta: float) -> tuple[Array, float]:
    """α and the optimum of (1), which is (2) with ρ = 0, by CVXPY: α is unique, β and ξ need not be."""
    alpha, beta, xi = cp.Variable(x.shape[1]), cp.Variable(), cp.Variable(len(x), nonneg=True)
    cost = cp.sum_squares(alpha) / 2 + theta * cp.sum(xi)
    problem = cp.Problem(cp.Minimize(cost), [cp.multiply(y, x @ alpha + beta) >= 1 - xi])
    problem.solve(solver=cp.CLARABEL)
    return alpha.value, problem.value


@pytest.mark.parametrize("seed", range(4))
def test_as_rho_falls_the_solution_nears_one_of_the_problem_without_it(seed: int) -> None:
    """Proposition 2.1, by the distance of α and by what the classifier costs in (1)."""
    x, y = random_rows(seed)
    alpha, optimum = problem_1(x, y, THETA)
    apart, excess = [], []
    for rho in (1.0, 1e-2, 1e-4, 1e-6):
        found = solve_svm(x, y, theta=THETA, rho=rho)
        hinge = np.maximum(0, 1 - y * (x @ found.alpha + found.beta)).sum()
        excess.append((found.alpha @ found.alpha / 2 + THETA * hinge) / optimum - 1)
        apart.append(np.linalg.norm(found.alpha - alpha) / np.linalg.norm(alpha))
    assert apart[0] > 0.01
    assert apart[-1] < 1e-3
    assert excess[0] > 1e-4
    assert abs(excess[-1]) < 1e-6


def test_the_share_of_classifiers_that_move_little_falls_with_the_noise_as_stated() -> None:
    """Proposition 2.3: 1 − D ≤ (q c/ε)² Tr V for some c. D is measured here, and with it the least such c:
    one that serves at every level of noise.
    """
    (x, y), draws = random_rows(1, q=30, p=2), 60
    clean, rng = solve_svm(x, y, theta=THETA, rho=RHO), np.random.default_rng(3)
    point, least = np.append(clean.alpha, clean.beta), []
    for sigma in (1e-1, 1e-2, 1e-3):
        moved = np.empty(draws)
        for i in range(draws):
            noisy = solve_svm(x + sigma * rng.normal(size=x.shape), y, theta=THETA, rho=RHO)
            moved[i] = np.linalg.norm(np.append(noisy.alpha, noisy.beta) - point)
        trace, ranked = x.shape[1] * sigma**2, np.sort(moved)
        lost = 1 - np.arange(draws) / draws  # 1 − D at ε just below each distance
        least.append(float(np.max(ranked * np.sqrt(lost / trace)) / len(x)))
    assert max(least) < 3 * min(least)


def written_out(x: Array, y: Array, s: SvmSolution, theta: float, rho: float) -> dict[str, float]:
    """The conditions (15) with θ in (15b), in the table's own coordinates, each beside its own terms."""
    omega, margin = s.multipliers, y * (x @ s.alpha + s.beta)
    return {
        "15a alpha": float((abs(s.alpha - (omega * y) @ x) / (abs(x).T @ omega + 1e-300)).max()),
        "15a beta": abs(rho * s.beta - omega @ y) / omega.sum(),
        "15b": float((np.minimum(rho * s.slack + theta - omega, 0)).min()) / theta,
        "feasible": float(np.maximum(1 - s.slack - margin, 0).max()),
        "nonnegative": -float(min(s.slack.min(), omega.min())),
        "complementary": float(abs(omega * (margin - 1 + s.slack)).max()) / theta,
        "complementary slack": float(abs(s.slack * (rho * s.slack + theta - omega)).max()) / theta,
    }


@pytest.mark.parametrize("seed", range(4))
def test_solution_meets_the_papers_conditions(seed: int) -> None:
    x, y = random_rows(seed)
    residuals = written_out(x, y, solve_svm(x, y, theta=2.0, rho=0.1), 2.0, 0.1)
    assert max(abs(r) for r in residuals.values()) < 1e-11, residuals


def test_multipliers_may_exceed_theta_and_need_not_balance() -> None:
    x, y = random_rows(0)
    s = solve_svm(x, y, theta=0.1, rho=1.0)
    assert s.multipliers.max() > 0.2
    assert abs(s.multipliers @ y) > 0.1
    assert s.slack[s.multipliers > 0.1] == pytest.approx(
        (s.multipliers[s.multipliers > 0.1] - 0.1), abs=1e-12
    )


def test_breast_cancer_as_in_the_paper() -> None:
    """min_i = 28.4127 m, 60 support vectors, accuracy .96134 on the training rows."""
    x, y = breast_cancer()
    mechanism, s = preserving_noise(x, y, theta=THETA, rho=RHO, m=1.0)
    assert s.polished
    assert (s.multipliers > 1e-9).sum() == 60
    assert (s.predict(x) == y).mean() == pytest.approx(0.96134, abs=1e-5)
    assert (mechanism.v**2).max() == pytest.approx(0.020251, abs=1e-6)
    assert (29 * mechanism.row_factors(0, 569)).min() == pytest.approx(28.4127, abs=1e-4)
    residuals = written_out(x, y, s, THETA, RHO)
    assert max(abs(r) for r in residuals.values()) < 1e-11, residuals


@pytest.mark.parametrize("m", [1.0, 1e2, 1e4, 1e6])
def test_released_table_gives_the_same_classifier(m: float) -> None:
    x, y = breast_cancer()
    released, check = release_preserving(x, y, theta=THETA, rho=RHO, m=m, key=KEY)
    assert check.preserved
    assert check.change < 1e-9
    assert np.std(released - x) == pytest.approx(np.sqrt(m * 29 / 30), rel=0.02)


def test_seventeen_digits_keep_the_classifier_and_fewer_do_not() -> None:
    """Written and read back: 17 digits are exact; float32, 4 decimals and integers lose it, ever more."""
    x, y = breast_cancer()
    mechanism, s = preserving_noise(x, y, theta=THETA, rho=RHO, m=100.0)
    released = x + mechanism.sample(0, len(x), KEY)
    changes = []
    for read_back in (
        np.array([[float(f"{cell:.17g}") for cell in row] for row in released]),
        released.astype(np.float32).astype(float),
        released.round(4),
        released.round(0),
    ):
        changes.append(check_preserved(read_back, y, mechanism, s, theta=THETA, rho=RHO))
    assert [c.preserved for c in changes] == [True, False, False, False]
    sizes = [c.change for c in changes]
    assert sizes == sorted(sizes)
    assert sizes[3] > 0.1


@pytest.mark.parametrize(
    ("theta", "rho", "flip"), [(1.1, RHO, False), (THETA, 2e-2, False), (THETA, RHO, True)]
)
def test_another_problem_does_not_give_it(theta: float, rho: float, flip: bool) -> None:
    x, y = breast_cancer()
    released, check = release_preserving(x, y, theta=THETA, rho=RHO, m=100.0, key=KEY)
    labels = y.copy()
    labels[0] *= -1 if flip else 1
    other = check_preserved(released, labels, check.mechanism, check.solution, theta=theta, rho=rho)
    assert not other.preserved


def test_wrong_multipliers_lose_the_classifier() -> None:
    """An error of 1e-3 in ω moves the solution of the release: the check can fail."""
    x, y = breast_cancer()
    s = solve_svm(x, y, theta=THETA, rho=RHO)
    rng = np.random.default_rng(0)
    for error, least in ((1e-3, 1e-2), (1e-6, 1e-5)):
        omega = s.multipliers * (1 + error * rng.normal(size=len(y)))
        noise = Correlated(omega * y, s.alpha, 100.0)
        moved = check_preserved(x + noise.sample(0, len(x), KEY), y, noise, s, theta=THETA, rho=RHO)
        assert moved.change > least
        assert not moved.preserved


def test_projection_is_the_papers_null_space() -> None:
    """Covariance of (I − vvᵀ)N(I − ââᵀ) = √m² Ψ Ψᵀ, Ψ a basis of null Ω, Ω assembled as printed."""
    rng = np.random.default_rng(3)
    q, p, m = 7, 3, 2.5
    v, alpha = rng.normal(size=q), rng.normal(size=p)
    mechanism = Correlated(v, alpha, m)
    omega = np.vstack([np.kron(v, np.eye(p)), np.kron(np.eye(q), alpha)])
    basis = null_space(omega)
    assert basis.shape == (q * p, (q - 1) * (p - 1))
    claimed = np.kron(np.eye(q) - np.outer(mechanism.v, mechanism.v), mechanism.covariance())
    np.testing.assert_allclose(claimed, m * basis @ basis.T, atol=1e-12)


def test_someone_with_the_other_support_rows_recovers_the_row_exactly() -> None:
    """The certificate says so: x_i = x̄_i + Σ_{k≠i} v_k (x̄_k − x_k) / v_i."""
    x, y = breast_cancer()
    released, check = release_preserving(x, y, theta=THETA, rho=RHO, m=100.0, key=KEY)
    v = check.mechanism.v
    i = int(np.argmax(abs(v)))
    others = np.arange(len(y)) != i
    recovered = released[i] + v[others] @ (released[others] - x[others]) / v[i]
    np.testing.assert_allclose(recovered, x[i], atol=1e-9)
    assert abs(released[i] - x[i]).max() > 1


def test_one_sided_noise_off_the_margin_keeps_the_classifier_too() -> None:
    """Prop. 2.9's "only if" is false: rows with ω_i = 0 pushed along y_iα, away from the margin; Nα ≠ 0."""
    x, y = breast_cancer()
    s = solve_svm(x, y, theta=THETA, rho=RHO)
    free = s.multipliers == 0
    assert free.sum() > 400
    push = np.random.default_rng(0).exponential(1.0, len(y)) * free
    moved = x + np.outer(push * y, s.alpha) / np.linalg.norm(s.alpha) ** 2
    assert s.change(solve_svm(moved, y, theta=THETA, rho=RHO)) < 1e-9
    inwards = x - np.outer(2 * push * y, s.alpha) / np.linalg.norm(s.alpha) ** 2
    assert s.change(solve_svm(inwards, y, theta=THETA, rho=RHO)) > 1e-3


def large(kind: str, q: int = 20_000, p: int = 6) -> tuple[Array, Array]:
    """Tables that begin with a sample and end with the rows near the margin."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(q, p))
    y = np.where(x @ rng.normal(size=p) + 0.5 * rng.normal(size=q) > 0, 1.0, -1.0)
    match kind:
        case "outlying rows":
            x = np.sign(x) * np.exp(3 * abs(x))
        case "whole numbers":
            x = x.round()
        case "separable":
            x[:, 0] += 8 * y
        case "one class":
            y[:] = 1.0
        case "labels at random":
            y = rng.permutation(y)
        case "sorted":
            order = np.argsort(y)
            x, y = x[order], y[order]
    return x, y


@pytest.mark.parametrize(
    "kind",
    ["plain", "outlying rows", "whole numbers", "separable", "one class", "labels at random", "sorted"],
)
def test_large_tables_meet_the_papers_conditions(kind: str) -> None:
    x, y = large(kind)
    s = solve_svm(x, y, theta=THETA, rho=RHO)
    assert s.polished
    residuals = written_out(x, y, s, THETA, RHO)
    assert max(abs(r) for r in residuals.values()) < 1e-10, residuals


def test_a_row_far_from_the_margin_that_ends_on_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too few rows called near, some of the others must cross: the answer is the same."""
    x, y = large("plain")
    expected = solve_svm(x, y, theta=THETA, rho=RHO)
    monkeypatch.setattr(svm, "NEAR", 0.001)
    again = solve_svm(x, y, theta=THETA, rho=RHO)
    assert again.polished
    assert expected.change(again) < 1e-12


def test_an_answer_whose_sets_do_not_settle_is_near_and_not_called_exact() -> None:
    """Columns of 1e-12 and offsets of 1e4 in one class: the sets of the margin are beyond rounding, the
    solution is not.
    """
    rng = np.random.default_rng(28)
    x = rng.normal(size=(17, 5)) * [0.0, 1.0, 1e-3, 1.0, 1.0] + [0.0, 1e-3, 1.0, 1e4, 1.0]
    s = solve_svm(x, np.full(17, -1.0), theta=1.0, rho=1.0)
    assert not s.polished
    assert (s.alpha @ s.alpha + s.beta**2 + s.slack @ s.slack) / 2 + s.slack.sum() < 1e-5


def test_an_answer_worse_than_no_classifier_is_not_called_exact() -> None:
    """Columns of 1e12 that hardly differ: beside terms of that size any residual is small, the optimum's and
    others'.
    """
    first = [
        -1877263142722.4675,
        -1130297624813.4585,
        108821744545.32584,
        91896532719.7145,
        -579998771217.6833,
    ]
    first += [-1204144553775.9624, 354210920139.9153, 94074689002.16948, -492769886806.435]
    second = 1e12 + np.array(
        [15863.9423, 1986.0621, 12210.5242, 7663.9701, 441.159, -1039.0406, 4377.2535, -5781.2894, 3973.3145]
    )
    x = np.column_stack([first, np.full(9, 1e12), second, np.full(9, 1e-3)])
    y = np.array([1.0, -1, 1, 1, -1, 1, -1, -1, 1])
    theta, rho = 1.3e-3, 1e-4
    s = solve_svm(x, y, theta=theta, rho=rho)
    xi = np.maximum(1 - y * (x @ s.alpha + s.beta), 0)
    objective = (s.alpha @ s.alpha + rho * (s.beta**2 + xi @ xi)) / 2 + theta * xi.sum()
    assert objective <= (theta + rho / 2) * len(y) or not s.polished
