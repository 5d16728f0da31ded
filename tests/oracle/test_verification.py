"""Verification: it agrees with right estimates, finds wrong ones, and refuses what no program defines."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import vflens as vl
from vflens.types import Array, RowStatus
from vflens.verification import programs

DEFINED = ("ls", "clamped_ls", "half_star", "mean_star", "lmmse", "rcc1", "rcc2", "cls", "chebyshev")


def system(k: int, d: int, seed: int = 0) -> tuple[Array, Array, vl.Moments]:
    """A (k − 1, d), b (12, k − 1): of points inside, near vertices, and four without a solution."""
    rng = np.random.default_rng(seed)
    A, x = np.diff(rng.normal(size=(k, d)), axis=0), rng.random((12, d))
    moments = vl.Moments(x.mean(axis=0), np.cov(x.T))
    x[4:8] = np.where(rng.random((4, d)) < 0.5, np.round(x[4:8]), x[4:8])
    b = x @ A.T
    b[8:] += 2
    return A, b, moments


@pytest.mark.parametrize(("k", "d"), [(4, 6), (6, 4)])
@pytest.mark.parametrize("attack", DEFINED)
def test_what_an_attack_estimates_is_its_definition(attack: str, k: int, d: int) -> None:
    """RCC1 and the exact centre are solved to a gap, whose root bounds the distance."""
    A, b, moments = system(k, d)
    found = vl.verify(vl.estimate(attack, A, b, moments=moments), A, b, rows=12)
    assert found.rows.tolist() == list(range(12))
    assert found.largest < (1e-4 if attack in ("rcc1", "chebyshev") else 1e-6)


@pytest.mark.parametrize("start", ["zero", "half", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]])
def test_cls_is_verified_from_its_start(start: Any) -> None:
    A, b, _ = system(4, 6)
    assert vl.verify(vl.estimate("cls", A, b, start=start), A, b).largest < 1e-6
    other = vl.estimate("cls", A, b, start=start)
    other.params["start"] = "half" if start == "zero" else "zero"  # type: ignore[index]
    assert vl.verify(other, A, b).largest > 1e-2


@pytest.mark.parametrize("attack", DEFINED)
def test_a_wrong_row_is_found_and_named(attack: str) -> None:
    """A step along the null space, which leaves the residual as it is: only the definition shows it."""
    A, b, moments = system(4, 6)
    estimate = vl.estimate(attack, A, b, moments=moments)
    null = np.linalg.svd(A)[2][-1]
    estimate.values[5] += 1e-3 * null
    found = vl.verify(estimate, A, b, rows=12)
    assert found.largest == pytest.approx(1e-3 * abs(null).max(), rel=0.2)
    assert f"differ by at most {found.largest:.1e} (row 5)" in str(found)


def test_the_certificate_stands_beside_the_difference() -> None:
    A, b, _ = system(4, 6)
    estimate = vl.estimate("rcc2", A, b[:8])
    found = vl.verify(estimate, A, b[:8], rows=3, seed=1)
    assert len(found.rows) == 3
    assert found.certificate["gap"] == estimate.extras["gap"][found.rows].max()
    assert f"; residual at most {found.certificate['residual']:.1e}; gap at most " in str(found)


def test_rows_that_did_not_converge_claim_nothing() -> None:
    A, b, _ = system(4, 6)
    estimate = vl.estimate("chebyshev", A, b, most=1)
    assert set(estimate.status) == {RowStatus.NOT_CONVERGED}
    found = vl.verify(estimate, A, b)
    assert np.isnan(found.largest)
    assert str(found) == "chebyshev: no row converged, so that there is nothing to verify"


def test_the_programs_agree_with_a_search_without_any_program() -> None:
    """The definitions by SciPy's general minimiser, which shares the papers' formulas with CVXPY alone."""
    A, b, moments = system(3, 4)
    mean, K, row = moments.mean, moments.covariance, b[0]
    assert K is not None
    inverse = np.linalg.inv(K)
    costs = {
        "lmmse": (lambda x: (x - mean) @ inverse @ (x - mean), programs.lmmse(A, row, mean, K), None),
        "mean_star": (lambda x: (x - mean) @ (x - mean), programs.nearest(A, row, mean), None),
        "rcc2": (lambda x: x @ x - x.sum(), programs.rcc2(A, row), [(0, 1)] * 4),
    }
    for name, (cost, expected, bounds) in costs.items():
        given = {"type": "eq", "fun": lambda x: A @ x - row}
        found = minimize(cost, np.full(4, 0.5), bounds=bounds, constraints=given, tol=1e-14).x
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("attack", "params", "sentence"),
    [
        (
            "half",
            {},
            "attack 'half' is not defined by a convex program and cannot be verified: choose chebyshev, ",
        ),
        ("gia", {"steps": 2}, "attack 'gia' is not defined by a convex program"),
        ("cls", {"start": "random", "rng": 0}, "cls with start = random cannot be verified"),
    ],
)
def test_others_are_refused_in_one_sentence(attack: str, params: dict[str, Any], sentence: str) -> None:
    A, b, _ = system(4, 6)
    with pytest.raises(vl.errors.ConfigError) as refusal:
        vl.verify(vl.estimate(attack, A, b, **params), A, b)
    assert str(refusal.value).startswith(sentence)


def test_arrays_of_another_estimate_are_refused() -> None:
    A, b, _ = system(4, 6)
    estimate = vl.estimate("ls", A, b)
    with pytest.raises(vl.errors.ConfigError, match=r"^the estimate has shape \(12, 6\), A and b \(3, 6\): "):
        vl.verify(estimate, A, b[:3])
    with pytest.raises(vl.errors.ConfigError, match=r"^rows = 0: give a whole number from 1"):
        vl.verify(estimate, A, b, rows=0)
    with pytest.raises(
        vl.errors.ConfigError, match=r"^verify takes an estimate of vl\.estimate\(name, A, b\): "
    ):
        vl.verify(vl.Estimate("", estimate.rows, estimate.values, estimate.status), A, b)


def test_without_cvxpy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    A, b, _ = system(4, 6)
    for name in [
        n for n in sys.modules if n.partition(".")[0] == "cvxpy" or n.startswith("vflens.verification")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(vl.errors.ConfigError, match=r"pip install './WHEEL\[verify\]'"):
        vl.verify(vl.estimate("ls", A, b), A, b)
