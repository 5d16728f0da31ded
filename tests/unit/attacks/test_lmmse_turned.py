"""Turned weights: each kind of turn is found from rows and logits that are made up here."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from vflens.attacks.helpers.linear.turned import TURNS, Turn, turned
from vflens.defenses._orthonormal import Drawn, drawn_matrix
from vflens.types import Array

RNG = np.random.default_rng(4)
K, D, M = 4, 6, 24
X, WEIGHT = RNG.random((M, D)), RNG.normal(size=(K, D))
COMMON = RNG.normal(size=(M, 1))  # softmax does not see what adds to all classes


def _effect(weight: Array, offset: Array) -> Array:
    """What the equations see: differences of classes, and the constant."""
    return np.diff(np.column_stack([weight, offset]), axis=0)


@pytest.mark.parametrize("kind", get_args(Drawn))
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_drawn_matrix_is_undone(kind: Drawn, noise: float) -> None:
    """The party trains W on H x: its logits are those of W H on x. Noise: the model moves while it trains."""
    H = drawn_matrix(kind, D, np.random.default_rng(5))
    z = X @ (WEIGHT @ H).T + COMMON + noise * np.random.default_rng(6).normal(size=(M, K))
    found = turned(WEIGHT, X, z)
    expected = _effect(WEIGHT @ H, np.zeros(K))
    apart = np.abs(_effect(found.weight, found.offset) - expected).max()
    assert (
        apart < (0.4 if kind == "random" else 1e-9) if noise else apart < (0.05 if kind == "random" else 1e-9)
    )
    assert np.abs(_effect(WEIGHT, np.zeros(K)) - expected).max() > 1


def test_a_complement_and_no_turn_at_all_are_told_apart() -> None:
    for inputs, weight, offset in ((1 - X, -WEIGHT, WEIGHT.sum(axis=1)), (X, WEIGHT, np.zeros(K))):
        found = turned(WEIGHT, X, inputs @ WEIGHT.T + COMMON)
        np.testing.assert_array_equal(found.weight, weight)
        np.testing.assert_array_equal(found.offset, offset)


def test_an_order_that_assignment_misses_is_found_by_exchanges() -> None:
    """Fewer rows than columns: what regression sees is far from the weights."""
    rng = np.random.default_rng(7)
    d, m = 8, 6
    x, weight, order = rng.random((m, d)), rng.normal(size=(K, d)), rng.permutation(d)
    found = turned(weight, x, x @ weight[:, order].T)
    np.testing.assert_array_equal(found.weight, weight[:, order])


@pytest.mark.parametrize("kind", TURNS)
def test_every_kind_gives_weights_of_the_same_size(kind: Turn) -> None:
    found = kind(WEIGHT, X, X @ WEIGHT.T).weight
    before, after = (np.linalg.norm(np.diff(w, axis=0)) for w in (WEIGHT, found))
    assert after == pytest.approx(before, rel=1e-6)
