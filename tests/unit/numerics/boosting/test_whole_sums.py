"""Choices of whole numbers: against a walk through all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vflens.numerics.boosting import whole_sums
from vflens.numerics.boosting.whole_sums import WholeSums, Work


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("seed", range(10))
def test_choices_are_all_that_fit(k: int, seed: int) -> None:
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
    found = WholeSums(weights, due, slack).choices(least, most, Work())
    assert found is not None
    assert sorted(map(tuple, found.tolist())) == sorted(fitting)
    assert tuple(true.tolist()) in fitting


def test_too_many_choices_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_sums, "_MOST", 32)
    weights, least = np.full((2, 8), 0.25), np.zeros(8, int)
    alike = WholeSums(weights, np.array([1.0, 1.0]), np.array([0.1, 0.1]))
    assert alike.choices(least, least + 1, Work()) is None  # 16 choices of each half, 70 pairs fit
    none = WholeSums(weights, np.array([9.0, 1.0]), np.array([0.1, 0.1]))
    work = Work()
    found = none.choices(least, least + 1, work)
    assert found is not None
    assert found.shape == (0, 8)
    assert work.left == Work().left - 32
    assert none.choices(least, least + 2, Work()) is None  # 81 choices of a half
    assert none.choices(least, least + 1, Work(31)) is None
