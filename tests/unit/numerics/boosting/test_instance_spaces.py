"""Instance spaces as points and labels: against loops, scikit-learn's ridge, and recorded trainings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from treetraining import trained

from vflens.numerics.boosting.instance_spaces import learned, shared_spaces
from vflens.types import Array


def smallest(spaces: Array, tree: Array, number: int, row: int) -> int | None:
    """The smallest node of a tree that holds the row."""
    holding = [m for m in range(len(spaces)) if tree[m] == number and spaces[m, row]]
    return min(holding, key=lambda m: (int(spaces[m].sum()), m), default=None)


@pytest.mark.parametrize("seed", range(3))
def test_the_inner_product_counts_trees_where_two_rows_end_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spaces, tree = rng.random((12, 9)) < 0.4, rng.integers(0, 4, 12)
    points = shared_spaces(spaces, tree)
    ends = [[smallest(spaces, tree, number, row) for row in range(9)] for number in range(4)]
    due = [[sum(e[i] == e[j] is not None for e in ends) for j in range(9)] for i in range(9)]
    np.testing.assert_array_equal(points @ points.T, due)


def test_beliefs_are_those_of_ridge_regression() -> None:
    rng = np.random.default_rng(3)
    points = shared_spaces(rng.random((20, 30)) < 0.4, rng.integers(0, 5, 20))
    known, labels = np.array([3, 7, 1, 20, 11]), np.array([0, 2, 2, 1, 0])
    shares = np.array([0.4, 0.2, 0.4])
    unit = points / np.sqrt((points**2).sum(axis=1).mean())
    ridge = Ridge(alpha=0.1, fit_intercept=False).fit(unit[known], np.eye(3)[labels] - shares)
    np.testing.assert_allclose(learned(points, known, labels, 3), shares + ridge.predict(unit), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_ten_known_labels_give_nearly_all_and_spaces_of_other_rows_none(seed: int) -> None:
    training = trained(seed, 300, trees=10)
    seen, y, rng = training.seen_by_passive(), training.y, np.random.default_rng(seed)
    known = np.concatenate([np.flatnonzero(y == k)[:5] for k in (0, 1)])
    rest = np.setdiff1d(np.arange(300), known)

    def right(spaces: Array) -> float:
        points = shared_spaces(spaces, seen["tree"])
        beliefs = learned(points, known, y[known], 2)
        return float((beliefs.argmax(axis=1) == y)[rest].mean())

    blind = np.bincount(y[rest]).max() / len(rest)
    assert right(seen["spaces"]) > 0.88
    assert right(seen["spaces"][:, rng.permutation(300)]) < blind + 0.05
