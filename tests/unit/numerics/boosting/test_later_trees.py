"""Boxes of training rows: of small models against all tables that fit, and of a recorded model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from boostedmodels import ETA, LAMBDA, RECORDED, ends, grown, people, saved
from sklearn.datasets import load_breast_cancer
from thinned import first

from vflens.experiments.weights.tree_file import read_trees
from vflens.numerics.boosting import later_trees
from vflens.numerics.boosting.later_trees import Boxes, proven_boxes
from vflens.numerics.boosting.rates import UntoldError
from vflens.numerics.boosting.trees import Tree
from vflens.numerics.boosting.whole_sums import Work
from vflens.types import Array


def compositions(total: int, parts: Array) -> list[tuple[int, ...]]:
    """All ways to put ``total`` rows into the allowed of these leaves."""
    return [n for n in product(*(range(total * int(may) + 1) for may in parts)) if sum(n) == total]


def fitting(trees: list[Tree], base: float, rows: Array) -> list[Array]:
    """All tables (L, M) of ``rows`` (L,) of the first tree's leaves in the second's that give its sums."""
    first, second = trees
    columns = np.unique([*first.feature[first.feature >= 0], *second.feature[second.feature >= 0]])
    (low, high), (least, most) = first.boxes(columns), second.boxes(columns)
    meet = np.all(np.maximum(low[:, None], least) < np.minimum(high[:, None], most), axis=2)
    p = 1 / (1 + np.exp(-(np.log(base / (1 - base)) + first.value[first.leaves])))
    cover, value = second.cover[second.leaves], second.value[second.leaves]
    found = []
    for table in product(*(compositions(n, may) for n, may in zip(rows.tolist(), meet, strict=True))):
        n = np.array(table)
        ones = (p @ n + value * (cover + LAMBDA) / ETA).round(3)
        right = np.isclose(p * (1 - p) @ n, cover, rtol=1e-6, atol=0) & (ones % 1 == 0) & (ones >= 0)
        if (right & (ones <= n.sum(axis=0))).all():
            found.append(n)
    return found


def tiny(seed: int) -> tuple[Array, Array, list[Tree], float]:
    """Thirteen people with four columns of few values, and two trees of four leaves at most."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, (13, 4)).astype(float), rng.integers(0, 2, 13)
    return x, y, *saved(x, y, [2, 2], least_cover=0.3)


@pytest.mark.parametrize("seed", [s for s in range(20) if s != 2])  # 2: its trees do not tell the rates
def test_a_proven_table_is_the_only_one_that_fits(seed: int) -> None:
    x, y, trees, base = tiny(seed)
    first, second = (ends(tree, x) for tree in trees)
    tables = fitting(trees, base, np.bincount(first))
    found = proven_boxes(trees, base)
    assert found.leaves.shape[1] == 2
    table = np.zeros(tables[0].shape, int)
    table[tuple(found.leaves.T)] = found.rows
    np.testing.assert_array_equal([table], tables)
    np.add.at(table, (first, second), -1)
    assert not table.any()
    _check_classes(found, np.bincount(first, y), np.bincount(second, y))


def alike() -> tuple[Array, Array]:
    """Seventeen people; by the last two columns a tree has two leaves of four rows, two of class 1."""
    x = np.array([[c, a, b] for a in (0, 1) for b in (0, 1) for c in (0, 0, 1, 1)] + [[1, 0, 0]], float)
    return x, (x.sum(axis=1) > 1).astype(int)


def test_a_tree_is_not_proven_where_another_table_fits() -> None:
    """Rows of two leaves with one probability can be exchanged; the second tree asks for another column."""
    x, y = alike()
    (first,), base = saved(x, y, [2], least_cover=0.3)
    reached = ends(first, x)
    rows, ones = np.bincount(reached), np.bincount(reached, y)
    p = 1 / (1 + np.exp(-np.log(base / (1 - base)) - first.value[first.leaves][reached]))
    second, third = (grown(part, p - y, p * (1 - p), 2, 0.3) for part in (x[:, :1], x))
    trees = [first, second, third]
    assert len(fitting(trees[:2], base, rows)) > 1
    found = proven_boxes(trees, base)
    np.testing.assert_array_equal(found.leaves, np.arange(4)[:, None])
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal([found.least, found.most], [ones, ones])


def _check_classes(found: Boxes, *totals: Array) -> None:
    """The bounds are the ends of all numbers of class 1 in boxes that give the leaves these ``totals``."""
    seen = [
        ones
        for ones in product(*(range(n + 1) for n in found.rows.tolist()))
        if all(
            (np.bincount(leaf, ones) == total).all()
            for leaf, total in zip(found.leaves.T, totals, strict=True)
        )
    ]
    np.testing.assert_array_equal(found.least, np.min(seen, axis=0))
    np.testing.assert_array_equal(found.most, np.max(seen, axis=0))


def counted(found: Boxes, trees: list[Tree], x: Array, y: Array) -> tuple[Array, Array]:
    """The rows and those of class 1 in each of the boxes; every row is in one."""
    reached = np.stack([ends(tree, x) for tree in trees[: found.leaves.shape[1]]], axis=1)
    inside = (reached[:, None] == found.leaves).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    return inside.sum(axis=0), inside[y == 1].sum(axis=0)


@pytest.mark.parametrize("n", first([60, 150]))
def test_boxes_of_real_columns_are_those_of_their_people(n: int) -> None:
    """Trees as XGBoost grows them, with its default settings but depth 3."""
    x, y = (part[:n] for part in load_breast_cancer(return_X_y=True))
    x = x.astype(np.float32)
    trees, base = saved(x, y, [3] * 8)
    found = proven_boxes(trees, base)
    assert found.leaves.shape[1] >= 4
    rows, ones = counted(found, trees, x, y)
    np.testing.assert_array_equal(found.rows, rows)
    assert ((found.least <= ones) & (ones <= found.most)).all()


def test_boxes_of_a_recorded_model_are_those_of_its_people() -> None:
    """XGBoost's own file; the people are those of the examples."""
    model = read_trees(RECORDED / "bank.ubj")
    x, y = people()
    assert model.training.base is not None
    found = proven_boxes(model.trees, float(model.training.base[0]))
    assert found.leaves.shape == (99, 6)
    rows, ones = counted(found, list(model.trees), x.astype(np.float32), y)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.least, ones)
    np.testing.assert_array_equal(found.most, ones)


@pytest.mark.parametrize("seed", range(5))
def test_trees_of_other_rows_prove_nothing(seed: int) -> None:
    """The second tree lacks one person."""
    x, y = (part[:60] for part in load_breast_cancer(return_X_y=True))
    (first,), base = saved(x, y, [3])
    reached = ends(first, x)
    kept = np.arange(60) != np.random.default_rng(seed).integers(60)
    p = 1 / (1 + np.exp(-np.log(base / (1 - base)) - first.value[first.leaves][reached]))
    second = grown(x[kept], (p - y)[kept], (p * (1 - p))[kept], 3)
    assert proven_boxes([first, grown(x, p - y, p * (1 - p), 3)], base).leaves.shape[1] == 2
    with pytest.raises(UntoldError, match="other rows than the first"):
        proven_boxes([first, second], base)


def test_a_search_that_is_cut_short_proves_less_and_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = people()
    model = read_trees(RECORDED / "bank.ubj")
    assert model.training.base is not None
    monkeypatch.setattr(later_trees, "Work", lambda: Work(100_000))
    monkeypatch.setattr(later_trees, "_MOST_PLACES", 100)
    found = proven_boxes(model.trees, float(model.training.base[0]))
    assert 1 < found.leaves.shape[1] < 6
    rows, _ = counted(found, list(model.trees), x.astype(np.float32), y)
    np.testing.assert_array_equal(found.rows, rows)
    assert not found.least.any()
    np.testing.assert_array_equal(found.most, rows)
