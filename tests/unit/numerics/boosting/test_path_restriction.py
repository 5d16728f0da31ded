"""Path restriction finds exactly those choices of leaves that brute force finds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from vflens.numerics.boosting.path_restriction import AgreeingLeaves, restricted
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array

D, UNKNOWN = 4, np.array([1, 3])


def grown(rng: np.random.Generator, depth: int) -> Tree:
    """A random tree, with thresholds and values on a coarse grid so that sums and splits repeat."""
    rows: list[list[float]] = []

    def grow(left: int) -> int:
        node = len(rows)
        inner = left > 0 and rng.random() < 0.9
        rows.append(
            [int(rng.integers(D)), int(rng.integers(1, 8)) / 8, -1, -1, int(rng.integers(-3, 4)) / 2, 1]
        )
        if inner:
            rows[node][2:4] = grow(left - 1), grow(left - 1)
            rows[node][4] = 0
        else:
            rows[node][0] = -1
        return node

    grow(depth)
    f, t, l, r, v, c = np.array(rows).T  # noqa: E741
    return Tree(f.astype(int), t, l.astype(int), r.astype(int), value=v, cover=c)


def conditions(tree: Tree) -> dict[int, list[tuple[int, float, bool]]]:
    """Node of each leaf → feature, threshold and direction of every split before it."""
    found: dict[int, list[tuple[int, float, bool]]] = {}

    def walk(node: int, before: list[tuple[int, float, bool]]) -> None:
        f = int(tree.feature[node])
        if f < 0:
            found[node] = before
            return
        walk(int(tree.left[node]), [*before, (f, float(tree.threshold[node]), True)])
        walk(int(tree.right[node]), [*before, (f, float(tree.threshold[node]), False)])

    walk(0, [])
    return found


def ends(tree: Tree, x: Array) -> int:
    """The node of the leaf of ``x`` (D,)."""
    (node,) = [n for n, c in conditions(tree).items() if all((x[f] < t) == left for f, t, left in c)]
    return node


def brute(trees: list[Tree], x: Array, target: float) -> list[tuple[tuple[int, ...], Any]]:
    """Every choice of one leaf per tree that the own columns and the sum allow, with its box."""
    found = []
    every = [conditions(tree) for tree in trees]
    for chosen in itertools.product(*(c.items() for c in every)):
        splits = [s for _, conditions_of in chosen for s in conditions_of]
        if any((x[f] < t) != left for f, t, left in splits if f not in UNKNOWN):
            continue
        box = {int(f): [0.0, 1.0 + 1e-9] for f in UNKNOWN}
        for f, t, left in splits:
            if f in box and left:
                box[f][1] = min(box[f][1], t)
            elif f in box:
                box[f][0] = max(box[f][0], t)
        total = sum(tree.value[node] for tree, (node, _) in zip(trees, chosen, strict=True))
        if abs(total - target) < 1e-6 and all(low < high for low, high in box.values()):
            found.append((tuple(node for node, _ in chosen), box))
    return found


def candidates(tree: Tree, x: Array) -> AgreeingLeaves:
    passes, left = tree.goes_left
    known = passes & ~np.isin(tree.feature, UNKNOWN)
    kept = np.flatnonzero(~(known & (left != tree.sends_left(x[None])[0])).any(axis=1))
    low, high = tree.boxes(UNKNOWN)
    return AgreeingLeaves(kept, low[kept], high[kept], tree.value[tree.leaves[kept], None])


@pytest.mark.parametrize("seed", range(12))
def test_every_choice_is_that_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = [grown(rng, 3) for _ in range(3)]
    x = rng.random(D)
    nodes = [ends(tree, x) for tree in trees]
    reached = [tree.leaves[tree.reached(tree.sends_left(x[None]))[0]] for tree in trees]
    assert reached == nodes
    target = float(sum(tree.value[node] for tree, node in zip(trees, nodes, strict=True)))
    due = brute(trees, x, target)
    given = ([candidates(tree, x) for tree in trees], np.array([target]), np.zeros(2), np.ones(2))
    found = restricted(*given, tolerance=1e-9, most=10_000, rng=rng)
    assert (found.complete, found.found) == (True, len(due))
    assert len(due) >= 1
    boxes = np.array([[box[int(f)] for f in UNKNOWN] for _, box in due])
    np.testing.assert_array_equal(found.low, boxes[:, :, 0].min(axis=0))
    np.testing.assert_allclose(found.high, np.minimum(boxes[:, :, 1].max(axis=0), 1))
    assert found.leaves is not None
    drawn = tuple(int(tree.leaves[leaf]) for tree, leaf in zip(trees, found.leaves, strict=True))
    assert drawn in {chosen for chosen, _ in due}
    assert ((found.low <= x[UNKNOWN]) & (x[UNKNOWN] <= found.high)).all()


def test_a_choice_is_drawn_evenly() -> None:
    leaves = AgreeingLeaves(np.arange(4), np.zeros((4, 1)), np.ones((4, 1)), np.array([[1.0], [1], [1], [9]]))
    rng = np.random.default_rng(0)
    given = ([leaves], np.ones(1), np.zeros(1), np.ones(1))
    drawn = [restricted(*given, tolerance=0, most=9, rng=rng).leaves for _ in range(1000)]
    counts = np.bincount([int(leaves[0]) for leaves in drawn if leaves is not None])
    assert counts / 1000 == pytest.approx([1 / 3] * 3, abs=0.06)


def test_a_search_that_stops_early_claims_nothing() -> None:
    many = AgreeingLeaves(np.arange(3), np.zeros((3, 1)), np.full((3, 1), 0.5), np.zeros((3, 1)))
    given = ([many] * 8, np.zeros(1), np.zeros(1), np.ones(1))
    found = restricted(*given, tolerance=0, most=50, rng=np.random.default_rng(0))
    assert (found.complete, found.low[0], found.high[0]) == (False, 0, 1)
    assert restricted(*given, tolerance=0, most=10_000, rng=np.random.default_rng(0)).found == 3**8


def test_a_score_that_no_choice_gives_claims_nothing() -> None:
    leaves = AgreeingLeaves(np.arange(2), np.zeros((2, 1)), np.full((2, 1), 0.5), np.ones((2, 1)))
    found = restricted(
        [leaves],
        np.array([7.0]),
        np.zeros(1),
        np.ones(1),
        tolerance=0.1,
        most=9,
        rng=np.random.default_rng(0),
    )
    assert (found.found, found.complete, found.high[0]) == (0, False, 1)
