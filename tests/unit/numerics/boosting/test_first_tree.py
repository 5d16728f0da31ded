"""Class counts in the first tree's leaves: of random trees with XGBoost's numbers, and of recorded ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from boostedmodels import RECORDED, ends, people

from vflens.experiments.weights.tree_file import read_trees
from vflens.numerics.boosting.first_tree import leaf_counts, leaf_rows
from vflens.numerics.boosting.rates import UntoldError
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array


def boosted(
    seed: int,
    eta: float,
    penalty: float,
    *,
    heavy: float = 1.0,
    positive: float = 1.0,
    depth: int = 3,
    l1: float = 0,
    many: int = 3,
) -> tuple[list[Tree], Array, Array]:
    """Trees of random splits with the numbers of XGBoost; of the first tree's leaves rows and ones.

    ``heavy`` is the weight of one half of the rows, ``positive`` that of rows of class 1.
    """
    rng = np.random.default_rng(seed)
    x, n = rng.random((400, 4)), 400
    y = (rng.random(n) < 0.2 + 0.6 * (x[:, 0] > 0.5)).astype(float)
    weights = np.where(rng.random(n) < 0.5, heavy, 1.0) * np.where(y == 1, positive, 1.0)
    margin, trees = np.full(n, np.log(0.3 / 0.7)), []
    for _ in range(many):
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
    np.testing.assert_array_equal(_counts(trees), [[rows, ones]])


@pytest.mark.parametrize("positive", [2.0, 3.0, 0.5, 3.5, 99 / 7, 120.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_of_class_1_is_no_number_of_rows(seed: int, positive: float) -> None:
    trees, rows, ones = boosted(seed, 0.3, 1.0, positive=positive)
    base = np.array([0.3])
    found = leaf_counts(trees, np.zeros(3, int), base, positive)
    np.testing.assert_array_equal(found, [[rows, ones]])
    with pytest.raises(UntoldError, match="scale_pos_weight is 0"):
        leaf_counts(trees, np.zeros(3, int), base, 0.0)


@pytest.mark.parametrize(("eta", "penalty"), [(0.1, 1.0), (0.03, 3.0), (0.3, 0.0)])
@pytest.mark.parametrize("seed", range(5))
def test_many_stumps_tell_the_counts(seed: int, eta: float, penalty: float) -> None:
    """Children cancel in a stump: its equation is small beside its terms."""
    trees, rows, ones = boosted(seed, eta, penalty, depth=1, many=50)
    np.testing.assert_array_equal(_counts(trees), [[rows, ones]])


@pytest.mark.parametrize(("depth", "many"), [(1, 1), (1, 2), (2, 1)])
def test_too_few_splits_tell_the_truth_or_nothing(depth: int, many: int) -> None:
    """One split is one equation in two unknowns: no seed may give counts."""
    for seed in range(200):
        trees, rows, ones = boosted(seed, 0.3, 1.0, depth=depth, many=many)
        found = _counts(trees)
        assert found is None or depth == 2
        assert found is None or np.array_equal(found, [[rows, ones]])


def test_leaves_of_squared_error_hold_as_many_rows_as_their_cover() -> None:
    """A file without covers, or with covers that are no sums, tells nothing."""
    cover = np.array([7.0, 3, 4, 1, 2])
    feature, threshold = np.array([0, 0, -1, -1, -1]), np.zeros(5)
    left, right = np.array([1, 3, -1, -1, -1]), np.array([2, 4, -1, -1, -1])
    tree = Tree(feature, threshold, left, right, value=cover, cover=cover)
    np.testing.assert_array_equal(leaf_rows(tree), [4, 1, 2])
    for wrong in (np.ones(5), np.zeros(5), cover / 2, cover * [1, 1, 1, 1, 2]):
        with pytest.raises(UntoldError):
            leaf_rows(replace(tree, cover=wrong))


def _counts(trees: list[Tree], base: float = 0.3) -> list[tuple[Array, Array]] | None:
    """Those of ``trees`` of one score; None where they tell nothing."""
    try:
        return leaf_counts(trees, np.zeros(len(trees), int), np.array([base]))
    except UntoldError:
        return None


@pytest.mark.parametrize("base", [[1 / 3, 1 / 3, 1 / 3], [0.02, 0.5, 0.48]])
@pytest.mark.parametrize("seed", range(5))
def test_counts_of_each_class_are_those_of_the_rows(seed: int, base: list[float]) -> None:
    """The loss of softmax: the gradient of a class's score, and twice p (1 − p)."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((300, 4)), rng.choice(3, 300, p=[0.1, 0.5, 0.4])
    margins, trees = np.tile(np.log(base), (300, 1)), []
    for _ in range(2):
        height = np.exp(margins)
        p = height / height.sum(axis=1, keepdims=True)
        for k in range(3):
            g, h = p[:, k] - (y == k), 2 * p[:, k] * (1 - p[:, k])
            trees.append(_tree(x, g, h, 0.3, 1.0, depth=k, l1=0, rng=rng))
            margins[:, k] += trees[-1].value[trees[-1].leaves][ends(trees[-1], x)]
    found = leaf_counts(trees, np.array([0, 1, 2] * 2), np.array(base))
    for k, counts in enumerate(found):
        np.testing.assert_array_equal(counts, _true(trees[k], x, y == k))
    twisted = np.array([0, 2, 1] * 2)
    with pytest.raises(UntoldError, match="not whole"):
        leaf_counts(trees, twisted, np.array([0.1, 0.5, 0.4]))


def _true(tree: Tree, x: Array, members: Array) -> list[Array]:
    """For each leaf the rows of ``x`` and the members among them."""
    reached = ends(tree, x)
    return [np.bincount(reached, of, len(tree.leaves)) for of in (None, members)]


@pytest.mark.parametrize("name", ["bank.ubj", "bank.json"])
def test_counts_of_a_recorded_model_are_those_of_its_people(name: str) -> None:
    """XGBoost's own file: it names neither η nor λ. The labels are those of the examples' people."""
    model = read_trees(RECORDED / name)
    x, y = people()
    assert model.training.base == pytest.approx(y.mean())
    assert model.training.base is not None
    found = leaf_counts(model.trees, model.score, model.training.base)
    np.testing.assert_array_equal(found, [_true(model.trees[0], x.astype(np.float32), y)])


def test_counts_of_each_class_of_a_recorded_model_are_those_of_its_people() -> None:
    """The label is ``balance``, cut at 1 and 4. One person has the first class: its first tree is a root."""
    model = read_trees(RECORDED / "classes.ubj")
    x = people()[0].astype(np.float32)
    y = np.digitize(x[:, 3], [1, 4])
    assert model.training.base == pytest.approx(np.bincount(y) / len(y), abs=2e-6)
    assert model.training.base is not None
    found = leaf_counts(model.trees, model.score, model.training.base)
    assert [len(rows) for rows, _ in found] == [1, 3, 2]
    for k, counts in enumerate(found):
        np.testing.assert_array_equal(counts, _true(model.trees[k], x, y == k))


def test_what_does_not_fit_the_formulas_tells_nothing() -> None:
    trees, *_ = boosted(0, 0.3, 1.0)
    assert _counts(trees) is not None
    assert _counts(trees, 0.31) is None  # the numbers of rows are not whole
    assert _counts(boosted(0, 0.3, 1.0, heavy=1.37)[0]) is None  # rows had weights
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
    assert [_counts([first, *trees[1:]]) for first in broken] == [None] * 7
    none = np.array([-1])
    stump = Tree(none, np.zeros(1), none, none, value=np.ones(1), cover=np.ones(1), weight=np.ones(1))
    assert _counts([stump]) is None


@pytest.mark.parametrize("factor", [1e6, 1e15, 1e300, -1])
def test_counts_that_nobody_could_check_are_not_told(factor: float) -> None:
    """Covers that all rows' weight multiplies: numbers nearly whole, as is every large one, or negative."""
    trees = [replace(tree, cover=factor * tree.cover) for tree in boosted(0, 0.3, 1.0)[0]]
    assert _counts(trees) is None


def test_a_base_score_that_no_training_gives_tells_nothing() -> None:
    trees = boosted(0, 0.3, 1.0)[0]
    assert [_counts(trees, base) for base in (1e-300, 1 - 1e-16)] == [None] * 2


def test_an_l1_penalty_is_noticed_in_trees_of_two_leaves_too() -> None:
    """Two numbers come out nearly whole by chance; the sums of all trees do not agree as well."""
    for seed in range(200):
        assert _counts(boosted(seed, 0.3, 1.0, depth=1, l1=5.0)[0]) is None
