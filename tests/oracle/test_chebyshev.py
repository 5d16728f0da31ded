"""The exact Chebyshev centre against brute force, the relaxations above it, and random directions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from thinned import first

from vflens import attacks
from vflens.numerics.estimators.chebyshev import _smallest_ball
from vflens.types import Array, RowStatus


def ball_by_brute_force(points: Array) -> tuple[Array, float]:
    """The smallest ball around a subset of at most p + 1 points that holds all of them."""
    best, center = np.inf, points[0]
    for size in range(1, points.shape[1] + 2):
        for subset in combinations(range(len(points)), size):
            corner = points[list(subset)]
            edges = corner[1:] - corner[0]
            offset = np.linalg.lstsq(2 * edges, (edges**2).sum(axis=1), rcond=None)[0] if size > 1 else 0.0
            middle = corner[0] + offset
            radius = np.linalg.norm(points - middle, axis=1).max()
            if radius < best:
                best, center = radius, middle
    return center, float(best)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_smallest_ball_is_that_of_brute_force(p: int) -> None:
    rng = np.random.default_rng(p)
    u, inside = rng.normal(size=(20, 9, p)), rng.random((20, 9)) < 0.8
    inside[:, 0] = True
    center, squared, gap = _smallest_ball(u, inside)
    for row in range(20):
        expected, radius = ball_by_brute_force(u[row, inside[row]])
        np.testing.assert_allclose(center[row], expected, atol=1e-6)
        assert np.sqrt(squared[row]) == pytest.approx(radius, abs=1e-9)
    assert (gap < 1e-9).all()


@pytest.mark.parametrize(("k", "d"), first([(3, 3), (3, 4), (4, 5), (4, 6), (2, 4), (6, 8)], 2))
def test_no_solution_is_outside_and_no_smaller_ball_holds_them(k: int, d: int) -> None:
    """Extreme solutions in random directions are inside; a local search finds no better centre."""
    rng = np.random.default_rng(d)
    A, x = np.diff(rng.normal(size=(k, d)), axis=0), rng.random((4, d))
    estimate = attacks.estimate("chebyshev", A, x @ A.T)
    for row in range(4):
        b = A @ x[row]
        ends = np.array(
            [linprog(c, A_eq=A, b_eq=b, bounds=(0, 1)).x for c in rng.normal(size=(150, d))]
        )  # many more than there are vertices
        radius = estimate.extras["radius"][row]
        assert np.linalg.norm(ends - estimate.values[row], axis=1).max() == pytest.approx(radius, abs=1e-6)
        found = minimize(
            lambda c, e=ends: ((e - c) ** 2).sum(axis=1).max(), estimate.values[row], method="Nelder-Mead"
        )
        assert found.fun >= radius**2 - 1e-6
    assert (np.linalg.norm(x - estimate.values, axis=1) <= estimate.extras["radius"] + 1e-9).all()


def test_its_radius_is_below_both_relaxations() -> None:
    """r(S_F)² ≤ p₁ ≤ p₂; with one null direction the centre is the middle of a segment."""
    rng = np.random.default_rng(0)
    for k, d in ((2, 3), (3, 4), (4, 6), (5, 5)):
        A, x = np.diff(rng.normal(size=(k, d)), axis=0), rng.random((50, d))
        radius, first, second = (
            attacks.estimate(n, A, x @ A.T).extras["radius"] for n in ("chebyshev", "rcc1", "rcc2")
        )
        assert (radius <= first + 1e-7).all()
        assert (first <= second + 1e-4).all()  # √gap is added to the first
        assert (radius < second - 1e-3).any()
    values = attacks.estimate("chebyshev", [[1.0, 1.0]], [[0.5], [1.5]]).values
    np.testing.assert_allclose(values, [[0.25, 0.25], [0.75, 0.75]], atol=1e-9)


def test_too_many_candidates_are_not_tried() -> None:
    A, x = np.ones((1, 14)), np.full((3, 14), 0.25)
    estimate = attacks.estimate("chebyshev", A, x @ A.T, most=1000)
    assert set(estimate.status) == {RowStatus.NOT_CONVERGED}
    np.testing.assert_array_equal(estimate.values, attacks.estimate("rcc2", A, x @ A.T).values)
