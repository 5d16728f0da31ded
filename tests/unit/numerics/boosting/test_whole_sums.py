"""Choices of whole numbers: against a walk through all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vflens.numerics.boosting import whole_sums
from vflens.numerics.boosting.whole_sums import WholeSums, Work


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("seed", range(10))
def test_ends_are_those_of_all_choices_that_fit(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, least = rng.uniform(0.1, 0.3, (2, k)), rng.integers(0, 3, k)
    most = least + rng.integers(0, 4, k)
    true = rng.integers(least, most + 1)
    due, slack = weights @ true - [0, rng.integers(0, true.sum() + 1)], np.array([0.1, 0.1])
    fitting = []
    for n in product(*(range(a, b + 1) for a, b in zip(least, most, strict=True))):
        over = weights[1] @ n - due[1]
        near = [m for m in range(sum(n) + 1) if abs(over - m) <= slack[1]]
        if near and abs(weights[0] @ n - due[0]) <= slack[0]:
            fitting.append(n)
    found = WholeSums(weights, due, slack).ends(least, most, Work())
    assert found is not None
    np.testing.assert_array_equal(found, [np.min(fitting, axis=0), np.max(fitting, axis=0)])
    assert tuple(true.tolist()) in fitting


def test_too_many_choices_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_sums, "_MOST", 32)
    weights, least = np.full((2, 8), 0.25), np.zeros(8, int)
    alike = WholeSums(weights, np.array([1.0, 1.0]), np.array([0.1, 0.1]))
    assert alike.ends(least, least + 1, Work()) is None  # 16 choices of each half, 70 pairs fit
    none = WholeSums(weights, np.array([9.0, 1.0]), np.array([0.1, 0.1]))
    work = Work()
    found = none.ends(least, least + 1, work)
    assert found is not None
    assert (found[0] > found[1]).all()
    assert work.left == Work().left - 32
    assert none.ends(least, least + 2, Work()) is None  # 81 choices of a half
    assert none.ends(least, least + 1, Work(31)) is None


def test_a_hundred_numbers_of_which_few_are_open_have_ends() -> None:
    """More than an array of NumPy has dimensions."""
    least = np.full(200, 3)
    most = least + (np.arange(200) % 50 == 0)
    true = least + (np.arange(200) == 50)
    weights = np.stack([np.arange(1, 201) / 7, np.full(200, 0.5)])
    sums = WholeSums(weights, weights @ true - [0, 5], np.array([1e-6, 1e-6]))
    np.testing.assert_array_equal(sums.ends(least, most, Work()), [true, true])
