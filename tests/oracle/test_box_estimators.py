"""RCC2, CLS and GIA against RVG's program in CVXPY, optimality conditions, Theorem 1, and systems without a
solution in the box.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import pinv
from scipy.optimize import lsq_linear
from scipy.special import log_softmax

from benchmarks.baselines import estimators as baseline
from vflens import attacks
from vflens.errors import ConfigError
from vflens.numerics.estimators import active_set, box, box_program, held
from vflens.numerics.estimators.box import nearest_in_box
from vflens.numerics.linear_system import LinearSystem
from vflens.registry import ATTACKS
from vflens.types import Array, Estimate, RowStatus
from vflens.verification import programs

#: CVXPY's own error at the tolerances of ``programs``; near a vertex it is the larger one.
AGREE = 1e-8


def system(seed: int, k: int, d: int, n: int, *, vertices: float = 0.0) -> tuple[Array, Array]:
    """A random A = J W and n points of the box; each coordinate is rounded to 0 or 1 with probability
    ``vertices``.
    """
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return np.diff(rng.normal(size=(k, d)), axis=0), np.where(rng.random((n, d)) < vertices, np.round(x), x)


def check_certificates(estimate: Estimate, truth: Array) -> None:
    """What travels with an estimate from exact scores: a small gap, and a radius that the truth keeps to."""
    assert (estimate.extras["gap"] < 1e-8).all()
    assert (estimate.extras["residual"] < 1e-8).all()
    assert (np.linalg.norm(truth - estimate.values, axis=1) <= estimate.extras["radius"] + 1e-7).all()
    assert ((estimate.values >= 0) & (estimate.values <= 1)).all()


@pytest.mark.parametrize("vertices", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("k", "d"), [(2, 1), (2, 5), (4, 5), (4, 12), (6, 6), (6, 20), (10, 11)])
def test_rcc2_solves_the_papers_program(k: int, d: int, vertices: float) -> None:
    A, x = system(d, k, d, 6, vertices=vertices)
    estimate = attacks.estimate("rcc2", A, x @ A.T)
    expected = x if d < k else np.array([programs.rcc2(A, A @ row) for row in x])
    np.testing.assert_allclose(estimate.values, expected, rtol=0, atol=AGREE if vertices < 1 else 1e-6)
    assert (estimate.status == RowStatus.OK).all()
    check_certificates(estimate, x)


@given(seed=st.integers(0, 10**6), d=st.integers(2, 9), share=st.floats(0, 0.7))
@settings(max_examples=60)
def test_newton_steps_with_held_coordinates(seed: int, d: int, share: float) -> None:
    """By the held coordinates or by the equations, whichever are fewer: what LAPACK says row by row."""
    rng = np.random.default_rng(seed)
    V, r = np.linalg.qr(rng.normal(size=(d, d)))[0], int(rng.integers(1, d))
    Q, fixed, g = V[:, :r], rng.random((d, 20)) < share, rng.normal(size=(r, 20))
    found = held.solve(Q, held.products(V[:, r:]), fixed.copy(), g, 1e-12)
    expected = np.full_like(found, np.nan)  # so where too many are held
    for row in np.flatnonzero(fixed.sum(axis=0) <= d - r):
        matrix = Q[~fixed[:, row]].T @ Q[~fixed[:, row]]
        judged = np.linalg.cond(matrix) < 1e8
        expected[:, row] = np.linalg.solve(matrix, g[:, row]) if judged else found[:, row]
    largest = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(found / largest, expected / largest, rtol=1e-6, atol=1e-6)


def chord(points: Array, w: Array) -> Array:
    """The first and the last α (2, N) for which points (N, d) + αw lie in the box."""
    at_bounds = np.sort(np.stack([-points / w, (1 - points) / w]), axis=0)
    return np.stack([at_bounds[0].max(axis=1), at_bounds[1].min(axis=1)])


@pytest.mark.parametrize("share", [3e-2, 3e-4, 1e-5])
@pytest.mark.parametrize("seed", range(4))
def test_coordinates_that_the_equations_all_but_determine(
    seed: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The accuracy that ``nearest_in_box`` promises, where the null space, one line, hardly moves one
    coordinate.

    The active sets solve every row of which rounding of b leaves a solution in the box. Of a single one it
    can leave none.
    """
    rng = np.random.default_rng(seed)
    w = rng.normal(size=10)
    w[3] = share * np.abs(w).max()
    w /= np.linalg.norm(w)
    stretch = np.geomspace(20, 0.7, 9)
    A = np.linalg.svd(w[None])[2][1:] * stretch[:, None]
    x, corners = rng.random((2, 400, 10))
    x[corners < 0.3] = np.round(x[corners < 0.3])
    b, proximal, others = x @ A.T, box._proximal, []

    def record(dual: Any, *rest: Any, **options: Any) -> Array:
        others.append(np.diff(chord((dual.Q @ dual.t).T + 0.5, w), axis=0)[0])
        return proximal(dual, *rest, **options)

    monkeypatch.setattr(box, "_proximal", record)
    estimate = attacks.estimate("rcc2", A, b)
    residual = np.linalg.norm(estimate.values @ A.T - b, axis=1)
    rounding = 2 * A.size * np.finfo(float).eps * stretch[0] * np.sqrt(10)  # of A x̂ and b
    reach = np.hypot(1, 1 / np.abs(w).min()) / stretch[-1]
    nearest = x + np.clip((0.5 - x) @ w, *chord(x, w))[:, None] * w
    assert (estimate.status == RowStatus.OK).all()
    assert (residual <= box.NEAR * stretch[0] + rounding).all()
    assert (np.linalg.norm(estimate.values - nearest, axis=1) <= reach * (residual + rounding)).all()
    if w[3] ** 2 > active_set.FIXED:
        assert all((length < 0).all() for length in others)


@pytest.mark.parametrize("seed", range(6))
def test_theorem_1_holds_for_every_row(seed: int) -> None:
    """‖X − RCC2‖ ≤ ‖X − half*‖ ≤ ‖X − half‖ from exact scores (RVG Theorem 1)."""
    A, x = system(seed, 2 + seed, 3 + 2 * seed, 500, vertices=0.3 * (seed % 3))
    errors = [
        np.linalg.norm(attacks.estimate(n, A, x @ A.T).values - x, axis=1)
        for n in ("rcc2", "half_star", "half")
    ]
    assert (errors[0] <= errors[1] + 1e-9).all()
    assert (errors[1] <= errors[2] + 1e-9).all()
    assert (errors[0] < errors[1] - 1e-3).any() or A.shape[1] < len(A)


@pytest.mark.parametrize("seed", range(8))
def test_rows_without_a_solution_in_the_box_get_the_nearest_best_point(seed: int) -> None:
    """Least ‖A x − b‖ first, then nearest to ½·1; two CVXPY programs in turn."""
    rng = np.random.default_rng(seed)
    A, x = system(seed, 3 + seed % 4, 4 + seed, 6)
    b = x @ A.T + rng.normal(size=(6, len(A))) * 3
    estimate = attacks.estimate("rcc2", A, b)
    empty = estimate.status == RowStatus.EMPTY_BOX
    assert empty.any()
    for row in np.flatnonzero(empty):
        expected = programs.nearest_of_least_residual(A, b[row], np.full(A.shape[1], 0.5))
        np.testing.assert_allclose(estimate.values[row], expected, rtol=0, atol=1e-5)
        assert abs(baseline.cls(A, b[row]) - estimate.extras["residual"][row]) < 1e-6
    outside = np.linalg.norm(x - estimate.values, axis=1)
    assert (outside[empty] <= estimate.extras["radius"][empty]).all()  # whatever the truth in the box


def test_rows_one_by_one_agree_with_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Newton, active sets and proximal steps every row is solved alone; the answers stay."""
    A, x = system(3, 4, 7, 20, vertices=0.2)
    b = x @ A.T
    b[10:] += 2
    reference = nearest_in_box(A, b, np.full(7, 0.5))
    monkeypatch.setattr(box, "PROXIMAL", ((1.0, 0), (1.0, 0)))
    monkeypatch.setattr(active_set, "CHANGES", 0)
    monkeypatch.setattr(box, "_newton", lambda dual: (np.zeros_like(dual.t), np.arange(dual.t.shape[1])))
    alone = nearest_in_box(A, b, np.full(7, 0.5))
    assert alone.converged.all()
    np.testing.assert_allclose(alone.x, reference.x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_columns_of_other_sizes_and_hardly_missed_boxes(seed: int) -> None:
    """Columns of A over four orders of magnitude, truths at vertices, b' off by 1e-12 to 10: every row ends,
    with the least residual.
    """
    rng = np.random.default_rng(seed)
    for _ in range(12):
        d, m = int(rng.integers(2, 12)), int(rng.integers(2, 8))
        A = rng.normal(size=(m, d)) * 10 ** rng.uniform(-2, 2, size=d)
        x = np.where(rng.random((30, d)) < 0.5, rng.integers(0, 2, size=(30, d)), rng.random((30, d)))
        noise = 10 ** rng.uniform(-12, 1, size=(30, 1)) * rng.normal(size=(30, m)) * np.abs(A).max()
        exact, off = (attacks.estimate("rcc2", A, b) for b in (x @ A.T, x @ A.T + noise))
        assert (exact.status == RowStatus.OK).all()
        assert not (off.status == RowStatus.NOT_CONVERGED).any()
        assert ((0.5 - exact.values) * (x - exact.values)).sum(axis=1).max() < 1e-7  # nearest to ½·1
        for row in (0, 1):
            b = x[row] @ A.T + noise[row]
            least = np.linalg.norm(A @ lsq_linear(A, b, (0, 1), method="bvls").x - b)
            assert off.extras["residual"][row] <= least + 1e-7 * (np.linalg.norm(b) + np.linalg.norm(A))


def test_truths_at_vertices_are_solved_by_active_sets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither proximal steps nor rows one by one are needed; a row in ten is compared with the paper's
    program.
    """
    monkeypatch.setattr(box, "PROXIMAL", ())
    monkeypatch.setattr(box_program, "nearest", None)
    for seed, (k, d) in enumerate([(3, 4), (6, 6), (10, 10), (10, 12), (6, 20), (2, 9)]):
        A, x = system(seed, k, d, 300, vertices=[1.0, 0.6][seed % 2])
        estimate = attacks.estimate("rcc2", A, x @ A.T)
        assert (estimate.status == RowStatus.OK).all()
        check_certificates(estimate, x)
        for row in range(0, 300, 60):
            expected = programs.rcc2(A, A @ x[row])
            np.testing.assert_allclose(estimate.values[row], expected, rtol=0, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.integers(1, 6), st.floats(0.0, 1.0))
def test_a_change_of_basis_changes_nothing(seed: int, m: int, d: int, vertices: float) -> None:
    """(A, b) → (TA, Tb) on consistent systems, of any rank, with truths on faces and vertices of the box."""
    rng = np.random.default_rng(seed)
    A, x = rng.integers(-2, 3, (m, d)).astype(float), rng.random((40, d))
    x = np.where(rng.random((40, d)) < vertices, np.round(x), x)
    T = np.linalg.qr(rng.normal(size=(m, m)))[0] * rng.uniform(0.5, 2, (m, 1))
    first, second = (attacks.estimate("rcc2", M @ A, x @ A.T @ M.T) for M in (np.eye(m), T))
    np.testing.assert_allclose(first.values, second.values, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(first.status, second.status)
    check_certificates(first, x)


def test_nothing_slow_is_imported() -> None:
    code = (
        "import sys, numpy as np, attacks; rng = np.random.default_rng(0); A = rng.normal(size=(3, 9));"
        "attacks.estimate('rcc2', A, rng.random((500, 9)) @ A.T); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "grpc", "cvxpy", "clarabel", "sklearn", "pandas"} & set(run.stdout.split())


# -- constrained least squares -------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["clamped_ls", "zero", "half", "random"])
@pytest.mark.parametrize("feasible", [True, False])
def test_cls_has_the_least_residual_and_is_nearest_to_its_start(start: str, feasible: bool) -> None:
    A, x = system(1, 4, 7, 5, vertices=0.3)
    b = x @ A.T + (0 if feasible else 2)
    estimate = attacks.estimate("cls", A, b, start=start, rng=np.random.default_rng(0))
    d = A.shape[1]
    starts = {
        "clamped_ls": np.clip(b @ pinv(A).T, 0, 1),
        "zero": np.zeros((5, d)),
        "half": np.full((5, d), 0.5),
        "random": np.random.default_rng(0).random((5, d)),
    }[start]
    for row in range(5):
        assert abs(estimate.extras["residual"][row] - baseline.cls(A, b[row])) < 1e-6
        expected = programs.nearest_of_least_residual(A, b[row], starts[row])
        np.testing.assert_allclose(estimate.values[row], expected, rtol=0, atol=1e-5)
    assert set(estimate.status) == {RowStatus.OK if feasible else RowStatus.EMPTY_BOX}


def test_cls_depends_on_its_start_and_equals_rcc2_from_the_centre() -> None:
    A, x = system(2, 3, 8, 50)
    b = x @ A.T
    zero, half = (attacks.estimate("cls", A, b, start=s).values for s in ("zero", "half"))
    np.testing.assert_array_equal(half, attacks.estimate("rcc2", A, b).values)
    assert np.abs(zero - half).max() > 0.2
    assert (zero.sum(axis=1) < half.sum(axis=1)).all()


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0])
def test_gia_sees_that_scores_hardly_depend_on_x(scale: float) -> None:
    """KL of such scores is near 0 wherever x is: a small gap alone does not show that x is found."""
    rng = np.random.default_rng(8)
    weight = scale * rng.normal(size=(4, 6))
    x = np.round(rng.random((40, 6)))
    log_c = log_softmax(x @ weight.T, axis=1)
    system = LinearSystem(np.diff(weight, axis=0), np.diff(log_c, axis=1), False, log_c)
    short, long = (
        ATTACKS.get("gia")(steps=steps).solve_system(system, rng=np.random.default_rng(0))
        for steps in (3, 2000)
    )
    assert (short.status == RowStatus.NOT_CONVERGED).mean() > 0.8
    assert (long.status == RowStatus.OK).mean() > 0.9
    assert long.extras["residual"].max() < 0.1 * np.linalg.norm(weight)


def test_kl_of_the_estimate_to_the_scores_is_not_convex() -> None:
    """RVG Remark 7 says it is: midpoints of random pairs above their chord refute it."""
    rng = np.random.default_rng(0)
    weight, log_c = 3 * rng.normal(size=(4, 5)), log_softmax(3 * rng.normal(size=4))
    ends = rng.random((2, 2000, 5))

    def divergence(x: Array) -> Array:
        log_guess = log_softmax(x @ weight.T, axis=1)
        total: Array = (np.exp(log_guess) * (log_guess - log_c)).sum(axis=1)
        return total

    chord = (divergence(ends[0]) + divergence(ends[1])) / 2
    assert (divergence(ends.mean(axis=0)) > chord + 1e-9).sum() > 100


def test_cls_starts_at_any_point_of_the_box() -> None:
    rng = np.random.default_rng(5)
    A, x, start = rng.normal(size=(2, 4)), rng.random((6, 4)), rng.random(4)
    b = x @ A.T
    found = attacks.estimate("cls", A, b, start=start)
    for row, value in zip(b, found.values, strict=True):
        np.testing.assert_allclose(
            value, programs.nearest_of_least_residual(A, row, start), rtol=0, atol=1e-5
        )
    half = attacks.estimate("cls", A, b, start=[0.5] * 4).values
    np.testing.assert_array_equal(half, attacks.estimate("cls", A, b, start="half").values)


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        ("cls", {"start": np.full(3, 0.5)},
                "cls: start has 3 numbers and there are 2 unknown columns: give one for each"),
        ("cls", {"start": [0.5, 1.5]}, "a point of the box: a number from 0 to 1 for each column"),
        ("cls", {"start": [[0.5, 0.5]]}, "a point of the box: a number from 0 to 1 for each column"),
        ("cls", {"start": "centre"},
                r"attack 'cls': start: give one of clamped_ls, zero, half, random, .* \(got 'centre'\)$"),
        ("gia", {"steps": 0}, r"^attack 'gia': steps: give 1 or more \(got 0\)$"),
        ("gia", {"step": 9}, "^attack 'gia': step: there is no such setting: it has learning_rate, "
                             "start, steps, tolerance$"),
        ("half", {"start": 1},
                "^attack 'half': start: there is no such setting: it has no parameters$"),
        ("half", {"rng": "five"},
                r"^rng = 'five': give a numpy Generator, a seed \(a whole number from 0\), or None$"),
        ("half", {"rng": -1}, "^rng = -1: give a numpy Generator"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_one_sentence(name: str, params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        attacks.estimate(name, [[1.0, 2.0]], [[1.0]], **params)
    assert "\n" not in str(refused.value)


def test_a_seed_is_as_good_as_a_generator() -> None:
    A, b = np.ones((1, 3)), np.ones((4, 1))
    seeded = attacks.estimate("random_guess", A, b, rng=5).values
    drawn = attacks.estimate("random_guess", A, b, rng=np.random.default_rng(5)).values
    np.testing.assert_array_equal(seeded, drawn)
