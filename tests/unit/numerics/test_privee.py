"""PRIVEE's map of scores against the matrix that its paper prints, and its inverse on made-up scores."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from vflens.numerics.theory.privee import Variant, factors, multiplied, undone
from vflens.types import Array

VARIANTS = get_args(Variant)


def _scores(k: int, seed: int, spread: float = 2.0, rows: int = 50) -> Array:
    z = spread * np.random.default_rng(seed).normal(size=(rows, k))
    c: Array = np.exp(z - z.max(axis=1, keepdims=True))
    c /= c.sum(axis=1, keepdims=True)
    return c


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_the_matrix_of_the_paper_on_sorted_scores(variant: Variant) -> None:
    """A = I − (2/K)·11ᵀ + diag(D), row by row as the authors' code has it; 2/K is what A takes off."""
    k, s = 6, _scores(6, 1)
    d = factors(variant, k, 0.1).drawn(np.random.default_rng(2)) - 1
    A = np.eye(k) - 2 / k * np.ones((k, k)) + np.diag(d)
    v = np.take_along_axis(multiplied(s, 1 + d), np.argsort(s, axis=1), axis=1)
    np.testing.assert_allclose(v - 2 / k, np.sort(s, axis=1) @ A.T, atol=1e-12)


def test_factors_lie_in_equal_parts_of_six_standard_deviations() -> None:
    """The Gaussian mechanism at ε = 0.1, δ = 1e-5 and sensitivity 0.1; PRIVEE++ by its code's numbers."""
    known = factors("privee", 4, 0.1)
    np.testing.assert_allclose((known.low - 1) / 4.8448, [-3, -1.5, 0, 1.5], atol=1e-4)
    np.testing.assert_allclose(known.low[1:], known.high[:-1])
    plus = factors("privee++", 2, 0.1)
    np.testing.assert_allclose(plus.high - 1, [0.5 * 0.48448 / 0.075, 0.48448 / 0.1])
    assert (factors("privee++", 2, 0.01).high == plus.high).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("k", [2, 10, 40])
def test_what_is_shown_is_scores_and_can_be_read(variant: Variant, k: int) -> None:
    known = factors(variant, k, 0.1)
    v = multiplied(_scores(k, 3), known.drawn(np.random.default_rng(4)))
    shares = known.shown(v)
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-12).all()
    assert (shares.sum(axis=1) > 0.1).all()  # what a family refuses as no scores
    np.testing.assert_allclose(known.read(shares), v, atol=1e-11)


@pytest.mark.parametrize(
    ("variant", "k", "least"),
    [
        ("privee", 2, 1.0),
        pytest.param("privee", 5, 1.0, marks=pytest.mark.facts),
        pytest.param("privee", 10, 1.0, marks=pytest.mark.facts),
        ("privee++", 2, 1.0),
        ("privee++", 10, 0.9),
    ],
)
def test_scores_are_found_from_products_alone(variant: Variant, k: int, least: float) -> None:
    """50 rows; two draws of scores and factors."""
    for seed in (1, 5):
        s = _scores(k, seed)
        known = factors(variant, k, 0.1)
        v = multiplied(s, known.drawn(np.random.default_rng(seed + 10)))
        found, explained = undone(v, known, 100)
        right = np.abs(found - s).max(axis=1) < 1e-7
        assert right.mean() >= least
        assert (right == explained).mean() >= 0.98


@pytest.mark.facts
def test_numbers_of_other_rows_explain_nothing() -> None:
    s, known = _scores(10, 1), factors("privee", 10, 0.1)
    v = multiplied(s, known.drawn(np.random.default_rng(11)))
    mixed = np.random.default_rng(6).permuted(v, axis=0)
    assert undone(v, known, 100)[1].all()
    assert undone(mixed, known, 3)[1].mean() < 0.5


def test_the_order_of_scores_is_not_kept() -> None:
    """The paper's claim: of ten classes few rows keep it, and all keep their largest score."""
    s = _scores(10, 8, rows=400)
    v = multiplied(s, factors("privee", 10, 0.1).drawn(np.random.default_rng(9)))
    assert (np.argsort(v, axis=1) == np.argsort(s, axis=1)).all(axis=1).mean() < 0.05
    assert (v.argmax(axis=1) == s.argmax(axis=1)).all()
