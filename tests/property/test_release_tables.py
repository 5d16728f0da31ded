"""Odd tables: each ends in a release that keeps what it promises, or in one clear sentence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vflens.errors import ConfigError
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.certificate import certify
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.table_noise.parameters import standardising_pi
from vflens.table_noise.preserving import PRESERVED, release_preserving
from vflens.table_noise.svm import solve_svm
from vflens.types import Array

KEY = b"a test's key"
SCALES = st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e4, 1e12])


@st.composite
def tables(draw: st.DrawFn) -> tuple[Array, Array]:
    """Rows and ±1 labels: one row, column or class, constants, duplicates, scales 1e-12 to 1e12."""
    q, p = draw(st.integers(1, 25)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(size=(q, p))
    if draw(st.booleans()):
        x = x.round(0)
    if draw(st.booleans()):
        x = x[rng.integers(0, q, q)]
    x *= draw(st.lists(SCALES, min_size=p, max_size=p))
    x += draw(st.lists(SCALES, min_size=p, max_size=p))
    y = np.where(rng.random(q) < draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])), 1.0, -1.0)
    return x, y


@given(tables(), st.sampled_from([1.3e-3, 1.0, 1e3]), st.sampled_from([1e-4, 1e-2, 1.0]))
@settings(max_examples=150)
def test_the_svm_is_solved_whatever_the_table(table: tuple[Array, Array], theta: float, rho: float) -> None:
    """Settled, or reported as not settled; if settled, no neighbour nor the trivial point is better."""
    x, y = table
    s = solve_svm(x, y, theta=theta, rho=rho)
    assert (s.multipliers >= 0).all()

    def objective(alpha: Array, beta: float) -> float:
        xi = np.maximum(1 - y * (x @ alpha + beta), 0)
        return float((alpha @ alpha + rho * (beta**2 + xi @ xi)) / 2 + theta * xi.sum())

    best, nothing = objective(s.alpha, s.beta), objective(np.zeros(x.shape[1]), 0.0)
    if not s.polished:
        assert best <= nothing * (1 + 1e-6) or abs(x).max() >= 1e12
        return
    rounding = 1e-9 * theta * (1 + abs(x) @ abs(s.alpha)).max()
    assert best <= nothing + rounding
    rng = np.random.default_rng(0)
    spread = abs(x).max(axis=0) + 1
    for size in (1e-1, 1e-4):
        for _ in range(5):
            step = size * rng.normal(size=x.shape[1] + 1)
            other = objective(s.alpha + step[:-1] / spread, s.beta + step[-1])
            assert best <= other + 1e-9 * abs(other) + rounding


def test_a_column_that_float64_hardly_resolves_gives_no_polished_answer() -> None:
    x = np.zeros((6, 4))
    x[:, 0] = 1e-3 + np.array([0, 1, -1, 1, 1, 1]) * 1e-12
    x[:, 1] = 1e12 + np.array([1, 1, 1, 0, -1, 0])
    assert not solve_svm(x, -np.ones(6), theta=1.3e-3, rho=1e-4).polished


@given(tables(), st.sampled_from([1e-2, 1.0, 1e4]))
@settings(max_examples=100)
def test_a_release_called_preserving_is_one(table: tuple[Array, Array], m: float) -> None:
    x, y = table
    released, check = release_preserving(x, y, theta=1.0, rho=1e-2, m=m, key=KEY)
    assert released.shape == x.shape
    assert np.isfinite(released).all()
    again = solve_svm(released, y, theta=1.0, rho=1e-2)
    assert check.preserved == (check.solution.polished and check.solution.change(again) <= PRESERVED)
    if len(x) == 1 or (x.shape[1] == 1 and check.solution.alpha.any()):
        np.testing.assert_array_equal(released, x)


def mechanism(kind: str, pi: Array) -> Mechanism:
    match kind:
        case "gaussian":
            return Gaussian(pi, 0.1)
        case "laplace":
            return Laplace(pi, 0.1)
        case _:
            return Bounded(np.full(len(pi), -2.0), np.full(len(pi), 1.0), pi, 0.1)


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "bounded"])
@given(table=tables(), standardise=st.booleans())
@settings(max_examples=40)
def test_every_table_gets_a_certificate_or_a_sentence(
    kind: str, table: tuple[Array, Array], standardise: bool
) -> None:
    x, _ = table
    moments = TableMoments.of(x)
    if standardise and not moments.deviation.all():
        with pytest.raises(ConfigError, match="leave out constant columns"):
            standardising_pi(moments.deviation)
        return
    pi = standardising_pi(moments.deviation) if standardise else np.ones(x.shape[1])
    noise = mechanism(kind, pi)
    # In the units of the noise: rows that differ by more than 10⁷ of its deviations have no ε.
    diameter = moments.deviation if standardise else np.ones(x.shape[1])
    made = certify(noise, moments, [str(j) for j in range(x.shape[1])], delta=1e-5, diameter=diameter)
    facts: dict[str, Any] = json.loads(made.model_dump_json(), parse_constant=pytest.fail)
    for row, variance in zip(facts["cramer_rao"]["per_feature"], x.var(axis=0), strict=True):
        assert row["van_trees"] <= row["linear_error"] + 1e-2 * variance
        assert row["bound"] <= row["released_error"] * (1 + 1e-9)
        assert row["linear_r2"] is None or -1e-9 <= row["linear_r2"] <= 1
    assert np.isfinite(noise.sample(0, len(x), KEY)).all()


@pytest.mark.parametrize("seed", range(60))
def test_columns_of_any_size_end_in_an_answer(seed: int) -> None:
    """1e-200 beside 1e149, offsets too: no warning, no traceback, and no claim that re-solving does not bear
    out.
    """
    rng = np.random.default_rng(seed)
    q, p = rng.integers(2, 30), rng.integers(1, 6)
    x = rng.normal(size=(q, p)) * 10.0 ** rng.integers(-200, 149, p)
    x += rng.choice([0, 1e6]) * 10.0 ** rng.integers(-20, 20, p)
    y = np.where(rng.random(q) < 0.5, 1.0, -1.0)
    theta, rho, m = 10.0 ** rng.integers(-6, 4, 3)
    released, check = release_preserving(x, y, theta=theta, rho=rho, m=m, key=KEY)
    again = solve_svm(released, y, theta=theta, rho=rho)
    assert np.isfinite([*again.alpha, again.beta]).all()
    assert not check.preserved or check.solution.change(again) <= PRESERVED
