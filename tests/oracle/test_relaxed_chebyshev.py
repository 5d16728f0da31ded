"""RCC1 against RVG's semidefinite program, its certificate against the optimal values, its radius against the
farthest points.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog
from thinned import first

from benchmarks.baselines import estimators as baseline
from vflens import attacks
from vflens.numerics.estimators import one_equation, relaxed_center, relaxed_center_program
from vflens.numerics.estimators.relaxed_chebyshev import POINT, relaxed_chebyshev
from vflens.types import Array, RowStatus
from vflens.verification import programs

#: The agreement asked of RCC1, whose program is solved to a gap of 1e-10 on either side.
AGREE = 1e-5


def system(seed: int, k: int, d: int, n: int, dominant: float = 1.0) -> tuple[Array, Array]:
    """A random A = J W, its first column scaled by ``dominant``, and n points of the box."""
    rng = np.random.default_rng(seed)
    A = np.diff(rng.normal(size=(k, d)), axis=0)
    A[:, 0] *= dominant
    return A, rng.random((n, d))


def check(A: Array, x: Array) -> tuple[Array, Array]:
    """Compares every row with the program; returns p₂ − p₁ and what was certified."""
    b = x @ A.T
    found, nearest = relaxed_chebyshev(A, b), attacks.estimate("rcc2", A, b)
    p2 = nearest.extras["radius"] ** 2
    assert found.converged.all()
    p1 = np.empty(len(b))
    for row in range(len(b)):
        p1[row] = baseline.rcc1_value(A, b[row])
        np.testing.assert_allclose(found.x[row], programs.rcc1(A, b[row]), rtol=0, atol=AGREE)
    np.testing.assert_allclose(found.value, p1, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.x @ A.T, b, rtol=0, atol=1e-8 * np.abs(A).max())
    assert (found.gap < 1e-6).all()
    return p2 - p1, found.certified


@pytest.mark.parametrize("dominant", [1.0, 8.0])
@pytest.mark.parametrize(("k", "d"), [(3, 3), (3, 5), (4, 6), (4, 9), (6, 9), (5, 14)])
def test_rcc1_solves_the_papers_program(k: int, d: int, dominant: float) -> None:
    """Certified and uncertified rows alike; where certified the optimal values agree."""
    excess, certified = check(*system(k + d, k, d, 4, dominant))
    assert (excess > -1e-6).all()
    assert (excess[certified] < 1e-6).all()


def test_the_certificate_is_found_where_the_optimal_values_agree() -> None:
    """It exists exactly there; the search may miss it next to the boundary, and never claims it elsewhere."""
    A, x = system(4, 4, 11, 40)
    b = x @ A.T
    excess = (attacks.estimate("rcc2", A, b).extras["radius"] ** 2) - [
        baseline.rcc1_value(A, row) for row in b
    ]
    certified = relaxed_chebyshev(A, b).certified
    assert 0.1 < certified.mean() < 1
    assert (excess[certified] < 1e-6).all()
    assert certified[excess < 1e-7].mean() > 0.7


@pytest.mark.parametrize("seed", first(range(6), 2))
def test_one_equation_in_its_three_regimes(seed: int) -> None:
    """K = 2: certified, the equation on the dominant feature and ½ elsewhere, and the kink between them."""
    regimes = set()
    for dominant in (1.0, 2.5, 6.0):
        A, x = system(seed, 2, 3 + seed % 3, 6, dominant)
        excess, certified = check(A, x)
        np.testing.assert_array_equal(certified, excess < 1e-6)  # one equation: decided, not searched
        values = attacks.estimate("rcc1", A, x @ A.T).values
        halves = (np.abs(values - 0.5) < 1e-9).sum(axis=1) == A.shape[1] - 1
        regimes |= set(np.where(certified, "certified", np.where(halves, "dominated", "kink")))
    assert regimes


def test_all_regimes_of_one_equation_occur() -> None:
    regimes = [0, 0, 0]
    for seed in range(10):
        A, x = system(seed, 2, 4, 40, 3.0)
        found = relaxed_chebyshev(A, x @ A.T)
        halves = (np.abs(found.x - 0.5) < 1e-9).sum(axis=1) == 3
        regimes[0] += found.certified.sum()
        regimes[1] += (~found.certified & halves).sum()
        regimes[2] += (~found.certified & ~halves).sum()
    assert min(regimes) > 10


@pytest.mark.parametrize("vertices", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_one_equation_without_a_solver(seed: int, vertices: float) -> None:
    """Zero, equal, tiny and dominant coefficients, truths on faces and vertices: no row needs a solver."""
    rng = np.random.default_rng(seed)
    d = 3 + 4 * seed
    a = [rng.normal(size=d), np.abs(rng.standard_cauchy(d)), rng.integers(-3, 4, d) + 0.0][seed % 3]
    a[0] = d + 1.0
    A, x = a[None], rng.random((300, d))
    x = np.where(rng.random(x.shape) < vertices, np.round(x), x)
    found, W = relaxed_chebyshev(A, x @ A.T), null_space(A)
    left = np.flatnonzero(~found.certified & (found.gap > 0))
    nearest = attacks.estimate("rcc2", A, x[left] @ A.T).values
    alone = one_equation.relaxed_center(a / np.linalg.norm(a), nearest)
    assert (alone.gap < 1e-8).all()
    single = left[
        found.value[left] <= POINT
    ]  # without points inside, the program is no reference: its own gap is large
    assert (((found.x[single] - x[single]) ** 2).sum(axis=1) <= found.value[single] + POINT).all()
    for row in np.setdiff1d(left, single)[:6]:
        exact, value, gap = relaxed_center_program.relaxed_center(W, x[row])
        assert gap < 1e-8
        np.testing.assert_allclose(found.x[row], exact, rtol=0, atol=AGREE)
        assert found.value[row] == pytest.approx(value, abs=1e-8)


def test_one_equation_by_brute_force() -> None:
    """Three features: the best of a grid of points, each with its longest side cut to the other two."""
    A, x = system(2, 2, 3, 40, 4.0)
    found, a = relaxed_chebyshev(A, x @ A.T), np.abs(A[0])
    grid = np.linspace(0, 1, 301)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid))
    rows = np.flatnonzero(~found.certified)
    assert len(rows) > 5
    for row in rows:
        point = np.stack([(A[0] @ x[row] - A[0, 1] * first - A[0, 2] * second) / A[0, 0], first, second])
        v = (point * (1 - point))[:, (point[0] >= 0) & (point[0] <= 1)]
        side = a[:, None] * np.sqrt(v)
        longest, last = side.argmax(axis=0), np.arange(v.shape[1])
        cut = ((side.sum(axis=0) - side[longest, last]) / a[longest]) ** 2
        value = v.sum(axis=0) - np.maximum(v[longest, last] - cut, 0)
        assert value.max() <= found.value[row] + 1e-9
        assert value.max() == pytest.approx(found.value[row], abs=2e-3)


@pytest.mark.parametrize("edge", [0.0, 0.3])
def test_features_that_the_equations_determine(edge: float) -> None:
    """They constrain nothing, inside the box and on its boundary; the interior point solves the others."""
    A = np.array([[1.0, 0, 0, 0, 0], [0, 5, 1, 1, -1], [0, 1, 0, 2, 1]])
    x = np.random.default_rng(0).random((6, 5))
    x[:, 0] = edge
    W = null_space(A)
    found = relaxed_center.relaxed_center(W, x)
    assert (found.gap < 1e-7).all()
    np.testing.assert_allclose(found.x[:, 0], edge, rtol=0, atol=1e-12)
    check(A, x)


def test_equal_points_do_not_imply_the_certificate() -> None:
    """A = (3, 1, 1), b = 2.5: both centres are ½·1, yet p₁ = .611 < p₂ = .75."""
    A, b = np.array([[3.0, 1.0, 1.0]]), np.array([[2.5]])
    found = relaxed_chebyshev(A, b)
    np.testing.assert_allclose(found.x, 0.5, atol=1e-9)
    np.testing.assert_allclose(attacks.estimate("rcc2", A, b).values, 0.5, atol=1e-12)
    assert not found.certified[0]
    assert found.value[0] == pytest.approx(11 / 18, abs=1e-8)
    assert baseline.rcc1_value(A, b[0]) == pytest.approx(11 / 18, abs=1e-6)


def test_a_single_solution_has_no_certificate_and_no_radius() -> None:
    """D = r: one point, p₁ = 0 < p₂ for a fractional one."""
    A, x = system(0, 4, 3, 5)
    found = relaxed_chebyshev(A, x @ A.T)
    np.testing.assert_allclose(found.x, x, atol=1e-10)
    np.testing.assert_array_equal(found.value, 0.0)
    assert not found.certified.any()


def test_a_single_solution_in_the_box_is_found() -> None:
    """D > r, but a vertex of the box that only itself solves the equations."""
    A = np.array([[1.0, 2.0, 1.0], [1.0, 1.0, 3.0]])
    b = np.array([[0.0, 0.0], [4.0, 5.0]])
    estimate = attacks.estimate("rcc1", A, b)
    np.testing.assert_allclose(estimate.values, [[0, 0, 0], [1, 1, 1]], atol=1e-4)


@pytest.mark.parametrize("name", ["rcc1", "rcc2"])
@pytest.mark.parametrize("seed", range(4))
def test_no_solution_in_the_box_is_farther_than_the_radius(name: str, seed: int) -> None:
    """Against the solutions that are extreme in random directions, found by linear programs."""
    rng = np.random.default_rng(seed)
    A, x = system(seed, 2 + seed, 5 + seed, 3, 1 + 3 * (seed % 2))
    b = x @ A.T
    estimate = attacks.estimate(name, A, b)
    for row in range(3):
        ends = [linprog(c, A_eq=A, b_eq=b[row], bounds=(0, 1)).x for c in rng.normal(size=(30, A.shape[1]))]
        far = np.linalg.norm(np.array(ends) - estimate.values[row], axis=1).max()
        assert far <= estimate.extras["radius"][row] + 1e-6
        assert far > 0.3 * estimate.extras["radius"][row]  # a radius worth reporting


def test_rcc1_is_not_ordered_by_theorem_1() -> None:
    """Rows on which RCC1 is worse than half*, and worse than half: no theorem says otherwise."""
    worse = np.zeros(2, int)
    for seed in range(20):
        A, x = system(seed, 3, 4, 50, 6.0)
        errors = [
            np.linalg.norm(attacks.estimate(n, A, x @ A.T).values - x, axis=1)
            for n in ("rcc1", "half_star", "half")
        ]
        worse += [(errors[0] > errors[1] + 1e-6).any(), (errors[0] > errors[2] + 1e-6).any()]
    assert (worse > 0).all()


@pytest.mark.parametrize(("k", "d", "dominant"), [(2, 20, 40.0), (4, 8, 10.0), (6, 20, 12.0), (5, 6, 1.0)])
def test_the_gap_bounds_value_and_distance_wherever_the_path_is_left(
    monkeypatch: pytest.MonkeyPatch, k: int, d: int, dominant: float
) -> None:
    """‖x(α) − x₁‖² ≤ gap and 0 ≤ φ(α) − p₁ ≤ gap, p₁ and x₁ from the conic program."""
    A, x = system(3, k, d, 6, dominant)
    W = null_space(A)
    exact = [relaxed_center_program.relaxed_center(W, row) for row in x]
    for steps in (2, 5, 8, 30):
        monkeypatch.setattr(relaxed_center, "STEPS", steps)
        found = relaxed_center.relaxed_center(W, x)
        excess = found.value - np.array([value for _, value, _ in exact])
        assert (excess > -1e-9).all()
        assert (excess <= found.gap + 1e-9).all()
        distance = ((found.x - np.array([at for at, _, _ in exact])) ** 2).sum(axis=1)
        assert (distance <= found.gap + 1e-9).all()
        assert (found.gap.max() < 1e-7) == (steps == 30)


def test_the_conic_program_agrees_with_the_batch() -> None:
    A, x = system(5, 4, 7, 6, 5.0)
    W = null_space(A)
    found = relaxed_center.relaxed_center(W, x)
    for row in range(6):
        alone, value, gap = relaxed_center_program.relaxed_center(W, x[row])
        np.testing.assert_allclose(found.x[row], alone, rtol=0, atol=AGREE)
        assert abs(found.value[row] - value) < 1e-7
        assert gap < 1e-8


def test_a_change_of_basis_changes_nothing() -> None:
    A, x = system(6, 4, 8, 60, 4.0)
    T = np.random.default_rng(0).normal(size=(3, 3))
    first, second = (attacks.estimate("rcc1", M @ A, x @ A.T @ M.T) for M in (np.eye(3), T))
    np.testing.assert_allclose(first.values, second.values, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(first.extras["certified"], second.extras["certified"])


def test_rows_without_a_solution_in_the_box_get_the_answer_of_rcc2() -> None:
    A, x = system(7, 4, 6, 20)
    b = x @ A.T + 3
    first, second = (attacks.estimate(name, A, b) for name in ("rcc1", "rcc2"))
    empty = first.status == RowStatus.EMPTY_BOX
    assert empty.any()
    np.testing.assert_array_equal(first.values[empty], second.values[empty])
