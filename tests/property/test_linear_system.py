"""The linear system on generated cases, degenerate ones included: never NaN, always a status, always x."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import null_space, orth
from scipy.special import log_softmax

from vflens import attacks
from vflens.numerics.linear_system import (
    LinearSystem,
    first_differences,
    in_range,
    nearest_solution,
    pseudo_inverse,
    residual_norm,
    row_basis,
    row_projector,
)
from vflens.plugins.attack import LinearAttack
from vflens.registry import ATTACKS
from vflens.types import Array, Moments, RowStatus

LINEAR = [n for n in ATTACKS.names() if issubclass(ATTACKS.get(n), LinearAttack)]
ENTRIES = st.floats(-1e3, 1e3, allow_subnormal=False).map(
    lambda v: round(v, 3)
)  # exact zeros and repeats do occur


@st.composite
def systems(draw: st.DrawFn) -> tuple[Array, Array]:
    """A (m, d) of any rank, with zero and repeated rows, and b (N, m) that may contradict itself."""
    m, d, n = draw(st.integers(0, 6)), draw(st.integers(1, 6)), draw(st.integers(0, 4))
    A = draw(arrays(np.float64, (m, d), elements=ENTRIES))
    repeats = draw(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 1.0, -2.0])), max_size=3))
    rows = [scale * A[i % m] for i, scale in repeats if m]
    A = np.vstack([A, *rows]) if rows else A
    return A, draw(arrays(np.float64, (n, len(A)), elements=ENTRIES))


@given(systems(), st.sampled_from(LINEAR))
def test_every_attack_answers_every_system(system: tuple[Array, Array], name: str) -> None:
    A, b = system
    d = A.shape[1]
    moments = Moments(np.full(d, 0.4), np.diag(np.arange(d) / d))  # singular: the first feature is constant
    estimate = attacks.estimate(name, A, b, moments=moments, rng=np.random.default_rng(0))
    assert estimate.values.shape == (len(b), d)
    assert np.isfinite(estimate.values).all()
    assert np.isfinite(estimate.extras["residual"]).all()
    assert set(estimate.status) <= {str(s) for s in RowStatus}


@given(systems())
def test_projector_and_pseudo_inverse(system: tuple[Array, Array]) -> None:
    """Against SciPy's bases, and Penrose's four conditions (1955)."""
    A, _ = system
    _well_conditioned(A)
    P, inverse = row_projector(A), pseudo_inverse(A)
    if A.size:
        Q, W = orth(A.T, rcond=1e-10), null_space(A, rcond=1e-10)
        np.testing.assert_allclose(P, Q @ Q.T, atol=1e-9)
        np.testing.assert_allclose(np.eye(A.shape[1]) - P, W @ W.T, atol=1e-9)
    scale = 1 + np.abs(A).max(initial=0.0)
    np.testing.assert_allclose(A @ inverse @ A, A, rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(inverse @ A @ inverse, inverse, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(A @ inverse, (A @ inverse).T, rtol=0, atol=1e-7)
    np.testing.assert_allclose(inverse @ A, P, rtol=0, atol=1e-7)


def _well_conditioned(A: Array) -> None:
    """Leave out ranks that are a matter of tolerance: singular values of 1e-12 … 1e-6 of the largest."""
    s = np.linalg.svd(A, compute_uv=False)
    assume(not ((s > 1e-12 * s.max(initial=0)) & (s < 1e-6 * s.max(initial=0))).any())


@given(systems(), st.data())
def test_consistent_systems_are_solved_and_told_from_the_others(
    system: tuple[Array, Array], data: Any
) -> None:
    A, _ = system
    _well_conditioned(A)
    x = data.draw(arrays(np.float64, (2, A.shape[1]), elements=st.floats(0, 1)))
    solution = nearest_solution(A, x @ A.T, np.full(A.shape[1], 0.5))
    scale = 1 + np.linalg.norm(A)
    assert (residual_norm(A, x @ A.T, solution) <= 1e-8 * scale).all()
    assert in_range(A, x @ A.T).all()
    outside = null_space(A.T) if A.size else np.eye(len(A))
    assume(outside.shape[1])
    assert not in_range(A, x @ A.T + 0.01 * scale * outside[:, 0]).any()


def test_rank_tolerance() -> None:
    """A direction 1e-9 as strong as the strongest counts, one 1e-11 as strong does not."""
    assert row_basis(np.diag([1.0, 1e-9])).shape == (2, 2)
    assert row_basis(np.diag([1.0, 1e-11])).shape == (2, 1)
    np.testing.assert_allclose(pseudo_inverse(np.diag([1.0, 1e-9])), np.diag([1.0, 1e9]))
    np.testing.assert_array_equal(pseudo_inverse(np.diag([1.0, 1e-11])), np.diag([1.0, 0.0]))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_range_tolerance_is_relative(unit: float) -> None:
    A = unit * np.array([[1.0], [1.0]])
    b = unit * np.array([[1.0, 1.0 + 1e-7], [1.0, 1.0 + 1e-4], [0.0, 1e-7], [0.0, 1e-4]])
    np.testing.assert_array_equal(in_range(A, b), [True, False, True, False])


@given(st.integers(0, 9))
def test_first_differences(k: int) -> None:
    v = np.arange(k) ** 2.0
    np.testing.assert_array_equal(first_differences(k) @ v, [b - a for a, b in pairwise(v)])


@st.composite
def released(draw: st.DrawFn) -> tuple[Array, Array, Array, Array]:
    """Features in the box, weights, what the adversary knows, and scores with any classes at 0."""
    n, k, d = draw(st.integers(0, 8)), draw(st.integers(2, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(
        st.sampled_from([0.1, 5.0, 500.0])
    )  # at 500 most probabilities underflow, their logarithms do not
    x, weight, known = rng.random((n, d)), spread * rng.normal(size=(k, d)), spread * rng.normal(size=(n, k))
    log_c = log_softmax(x @ weight.T + known, axis=1)
    zeros = draw(arrays(np.bool_, (n, k)))
    log_c[zeros & (log_c < log_c.max(axis=1, keepdims=True))] = -np.inf
    return x, weight, known, log_c


@given(released())
def test_systems_from_scores_hold_for_the_truth(case: tuple[Array, Array, Array, Array]) -> None:
    """Every row is in one system, loses one equation per class at 0, and its features solve what is left."""
    x, weight, known, log_c = case
    groups = LinearSystem.from_scores(log_c, known, weight)
    np.testing.assert_array_equal(sorted(i for rows, _ in groups for i in rows), np.arange(len(x)))
    for rows, system in groups:
        positive = np.isfinite(log_c[rows]).sum(axis=1)
        assert (positive - 1 == len(system.A)).all()
        assert system.saturated == (positive[0] < log_c.shape[1])
        scale = 1 + np.abs(log_c[rows][np.isfinite(log_c[rows])]).max() + np.abs(known).max()
        np.testing.assert_allclose(system.b, x[rows] @ system.A.T, rtol=0, atol=1e-12 * scale)


def test_differences_are_those_of_consecutive_positive_classes() -> None:
    """By hand: ln of the probability ratios, less what the adversary's own part explains."""
    c = np.array([[0.1, 0.0, 0.4, 0.5], [0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0]])
    log_c = np.log(c, out=np.full(c.shape, -np.inf), where=c > 0)
    known, weight = np.tile([0.0, 1.0, 3.0, 6.0], (3, 1)), np.array([[1.0], [2.0], [4.0], [8.0]])
    systems = {int(rows[0]): s for rows, s in LinearSystem.from_scores(log_c, known, weight)}
    np.testing.assert_array_equal(systems[0].A, [[3.0], [4.0]])
    np.testing.assert_allclose(systems[0].b, [[np.log(4.0) - 3.0, np.log(1.25) - 3.0]], rtol=1e-12)
    np.testing.assert_array_equal(systems[1].A, [[1.0], [2.0], [4.0]])
    np.testing.assert_allclose(systems[1].b, [[-1.0, -2.0, -3.0]], rtol=1e-12)
    assert systems[2].A.shape == (0, 1)
    assert systems[2].b.shape == (1, 0)
    assert [systems[i].saturated for i in range(3)] == [True, False, True]
