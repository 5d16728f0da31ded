"""Class counts in the first tree's leaves: of random trees with XGBoost's numbers, and of recorded ones."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vflens.experiments.weights.xgboost import read_xgboost
from vflens.numerics.boosting.first_tree import leaf_counts
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array

RECORDED = Path(__file__).parents[3] / "recorded/xgboost"


def boosted(
    seed: int, eta: float, penalty: float, *, heavy: float = 1.0, depth: int = 3, l1: float = 0
) -> tuple[list[Tree], Array, Array]:
    """Three trees of random splits with the numbers of XGBoost; of the first tree's leaves rows and ones.

    ``heavy`` is the weight of one half of the rows.
    """
    rng = np.random.default_rng(seed)
    x, n = rng.random((400, 4)), 400
    y = (rng.random(n) < 0.2 + 0.6 * (x[:, 0] > 0.5)).astype(float)
    weights = np.where(rng.random(n) < 0.5, heavy, 1.0)
    margin, trees = np.full(n, np.log(0.3 / 0.7)), []
    for _ in range(3):
        p = 1 / (1 + np.exp(-margin))
        trees.append(
            _tree(x, weights * (p - y), weights * p * (1 - p), eta, penalty, depth=depth, l1=l1, rng=rng)
        )
        margin += trees[-1].value[trees[-1].leaves][trees[-1].reached(trees[-1].sends_left(x))]
    ends = trees[0].reached(trees[0].sends_left(x))
    return trees, np.bincount(ends), np.bincount(ends, y)


def _tree(
    x: Array,
    g: Array,
    h: Array,
    eta: float,
    penalty: float,
    *,
    depth: int,
    l1: float,
    rng: np.random.Generator,
) -> Tree:
    nodes: list[list[float]] = []

    def grow(rows: Array, depth: int) -> int:
        node, feature, threshold = len(nodes), int(rng.integers(4)), rng.uniform(0.2, 0.8)
        left = rows & (x[:, feature] < threshold)
        inner = depth > 0 and 0 < left.sum() < rows.sum()
        G = g[rows].sum()
        weight = -np.sign(G) * max(abs(G) - l1, 0) / (h[rows].sum() + penalty)
        value = 0 if inner else eta * weight
        nodes.append([feature if inner else -1, threshold, -1, -1, value, h[rows].sum(), weight])
        if inner:
            nodes[node][2:4] = grow(left, depth - 1), grow(rows & ~left, depth - 1)
        return node

    grow(np.ones(len(x), bool), depth)
    feature, threshold, left, right, *rest = np.array(nodes).T
    feature, left, right = (part.astype(int) for part in (feature, left, right))
    value, cover, weight = (part.astype(np.float32).astype(float) for part in rest)
    return Tree(feature, threshold, left, right, value=value, cover=cover, weight=weight)


@pytest.mark.parametrize(("eta", "penalty"), [(0.3, 1.0), (0.05, 0.0), (1.0, 25.0), (0.7, 0.1)])
@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_the_rows(seed: int, eta: float, penalty: float) -> None:
    trees, rows, ones = boosted(seed, eta, penalty)
    found = leaf_counts(trees, 0.3)
    assert found is not None
    np.testing.assert_array_equal(found, [rows, ones])


@pytest.mark.parametrize("name", ["bank.ubj", "bank.json"])
def test_counts_of_a_recorded_model_are_those_of_its_people(name: str) -> None:
    """XGBoost's own file: it names neither η nor λ. The labels are those of the examples' people."""
    model = read_xgboost(RECORDED / name)
    x, y = people()
    assert model.base is not None
    assert model.base == pytest.approx(y.mean())
    found = leaf_counts(model.trees, model.base)
    ends = model.trees[0].reached(model.trees[0].sends_left(x.astype(np.float32)))
    assert found is not None
    np.testing.assert_array_equal(found, [np.bincount(ends), np.bincount(ends, y)])


def people() -> tuple[Array, Array]:
    """The inputs (180, 6) and labels of the people that both parties of the examples share."""
    examples = RECORDED.parents[2] / "examples"
    texts = [(examples / f"bank_{p}.csv").read_text(encoding="utf-8") for p in ("passive", "active")]
    passive, active = ({row["id"]: row for row in csv.DictReader(t.splitlines())} for t in texts)
    both = [{**passive[name], **active[name]} for name in passive.keys() & active.keys()]
    columns = ("age", "income", "credit_score", "balance", "contacts", "loan")
    x = np.array([[float(row[column]) for column in columns] for row in both])
    return x, np.array([row["subscribed"] == "yes" for row in both])


def test_what_does_not_fit_the_formulas_tells_nothing() -> None:
    trees, *_ = boosted(0, 0.3, 1.0)
    assert leaf_counts(trees, 0.3) is not None
    assert leaf_counts(trees, 0.31) is None  # the numbers of rows are not whole
    assert leaf_counts(boosted(0, 0.3, 1.0, heavy=1.37)[0], 0.3) is None  # rows had weights
    cover = trees[0].cover
    off = trees[0].weight
    assert off is not None
    broken = [
        replace(trees[0], weight=np.where(np.arange(len(off)) == 0, 1.01 * off, off)),
        replace(trees[0], weight=None),
        replace(trees[0], weight=1.1 * cover),
        replace(trees[0], weight=np.full_like(cover, np.inf)),
        replace(trees[0], cover=np.ones_like(cover)),
        *(
            replace(trees[0], cover=np.where(np.arange(len(cover)) == at, np.inf, cover))
            for at in (0, len(cover) - 1)
        ),
    ]
    assert [leaf_counts([first, *trees[1:]], 0.3) for first in broken] == [None] * 7
    none = np.array([-1])
    stump = Tree(none, np.zeros(1), none, none, value=np.ones(1), cover=np.ones(1), weight=np.ones(1))
    assert leaf_counts([stump], 0.3) is None


def test_an_l1_penalty_is_noticed_in_trees_of_two_leaves_too() -> None:
    """Two numbers come out nearly whole by chance; the sums of all trees do not agree as well."""
    for seed in range(200):
        assert leaf_counts(boosted(seed, 0.3, 1.0, depth=1, l1=5.0)[0], 0.3) is None
