"""Bins of rows from sums of gradients: against all assignments, and recorded trainings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from thinned import first
from treetraining import Training, trained

from vflens.numerics.boosting.histograms import Histograms, bins_of_rows
from vflens.types import Array


def column(training: Training, j: int) -> Histograms:
    """What the active party sees of one of the passive party's columns."""
    seen = training.seen_by_active()
    weights = np.stack([seen["gradient"], seen["hessian"]], axis=2)[seen["tree"]]
    sums = np.stack([seen["gradient_sums"][:, j], seen["hessian_sums"][:, j]], axis=2)
    return Histograms(seen["spaces"], weights, sums)


def drawn(seed: int, rows: int, nodes: int, bins: int) -> tuple[Histograms, Array]:
    """Sums of small whole numbers, so that many assignments fit, and the true bins."""
    rng = np.random.default_rng(seed)
    spaces, truth = rng.random((nodes, rows)) < 0.7, rng.integers(0, bins, rows)
    weights = np.stack([rng.integers(-2, 3, (nodes, rows)), rng.integers(1, 4, (nodes, rows))], axis=2)
    inside = (truth == np.arange(bins)[:, None])[None] & spaces[:, None]
    return Histograms(spaces, weights.astype(float), inside.astype(float) @ weights), truth


def looked_at_one_by_one(seen: Histograms) -> Array:
    """Rows whose bin follows when each sum is looked at alone, until nothing changes; by sets and loops."""
    nodes, bins = seen.sums.shape[:2]
    possible, before = [set(range(bins)) for _ in range(seen.spaces.shape[1])], None
    while possible != before:
        before = [set(p) for p in possible]
        for node, place in product(range(nodes), range(bins)):
            rows = [r for r in np.flatnonzero(seen.spaces[node]) if place in possible[r]]
            sure = [len(possible[r]) == 1 for r in rows]
            every = [c for c in product([0, 1], repeat=len(rows)) if all(np.array(c)[sure])]
            given = [c for c in every if (c @ seen.weights[node, rows] == seen.sums[node, place]).all()]
            for r, inside in zip(rows, zip(*given, strict=True), strict=True):
                if all(inside):
                    possible[r] = {place}
                elif not any(inside):
                    possible[r] -= {place}
    return np.array([len(p) == 1 for p in possible])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_proven_holds_in_every_assignment_that_gives_the_sums(seed: int) -> None:
    seen, truth = drawn(seed, rows=7, nodes=1 + seed % 4, bins=3)
    every = np.array(list(product(range(3), repeat=7)))
    inside = (every[:, None] == np.arange(3)[:, None])[:, None] & seen.spaces[None, :, None]
    fitting = every[(inside.astype(float) @ seen.weights == seen.sums).all(axis=(1, 2, 3))]
    assert (fitting == truth).all(axis=1).any()
    beliefs, proven = bins_of_rows(seen)
    assert (fitting[:, proven] == truth[proven]).all()
    np.testing.assert_array_equal(beliefs[proven], np.eye(3)[truth[proven]])
    np.testing.assert_array_equal(proven, looked_at_one_by_one(seen))


def test_one_node_proves_what_every_assignment_shares() -> None:
    """Alone, the sum of a bin is looked at as a whole: what is proven of it is all that can be."""
    proofs = 0
    for seed in range(30):
        seen, _ = drawn(seed, rows=6, nodes=1, bins=2)
        every = np.array(list(product(range(2), repeat=6)))
        inside = (every[:, None] == np.arange(2)[:, None])[:, None] & seen.spaces[None, :, None]
        fitting = every[(inside.astype(float) @ seen.weights == seen.sums).all(axis=(1, 2, 3))]
        shared = (fitting == fitting[0]).all(axis=0)
        np.testing.assert_array_equal(bins_of_rows(seen)[1], shared)
        proofs += shared.sum()
    assert proofs > 20


def sums_of_two_nodes(bins: Array) -> Histograms:
    """Sixty rows in the first node, the row 8 alone in the second."""
    rng = np.random.default_rng(4)
    weights = np.stack([rng.normal(size=60), rng.uniform(0.2, 0.25, 60)], axis=1)
    spaces = np.stack([np.ones(60, bool), np.arange(60) == 8])
    inside = (bins == np.arange(bins.max() + 1)[:, None]) & spaces[:, None]
    return Histograms(spaces, np.array([weights, weights]), inside.astype(float) @ weights)


def test_a_row_alone_in_a_bin_leaves_the_other_bin_to_all_others() -> None:
    bins = np.where(np.arange(60) == 7, 0, 1)
    beliefs, proven = bins_of_rows(sums_of_two_nodes(bins))
    assert proven.all()
    np.testing.assert_array_equal(beliefs, np.eye(2)[bins])


def test_open_rows_get_the_solution_nearest_to_equal_shares() -> None:
    """By Lagrange's equations: two rows are proven, one alone in the first bin; the others share two bins."""
    bins = np.where(np.arange(60) == 7, 0, 1 + np.arange(60) % 2)
    seen = sums_of_two_nodes(bins)
    beliefs, proven = bins_of_rows(seen)
    np.testing.assert_array_equal(np.flatnonzero(proven), [7, 8])
    np.testing.assert_array_equal(beliefs[proven], np.eye(3)[bins[proven]])
    np.testing.assert_array_equal(beliefs[~proven, 0], 0)
    left = seen.weights[0, ~proven]
    lagrange = np.block([[np.eye(58), left], [left.T, np.zeros((2, 2))]])
    due = np.concatenate([np.full((58, 2), 0.5), (seen.sums[0] - seen.sums[1])[1:].T])
    np.testing.assert_allclose(beliefs[~proven, 1:], np.linalg.solve(lagrange, due)[:58], atol=1e-9)


@pytest.mark.parametrize("seed", first(range(3)))
def test_more_rounds_prove_more_and_never_the_wrong_bin(seed: int) -> None:
    shares = []
    for trees in (1, 10, 30):
        training = trained(seed, 200, trees)
        beliefs, proven = bins_of_rows(column(training, 0))
        truth = training.bins[:, 0]
        assert (beliefs.argmax(axis=1) == truth)[proven].all()
        shares.append((proven.mean(), (beliefs.argmax(axis=1) == truth).mean()))
    (none, first), (_, second), (most, third) = shares
    assert none < 0.1
    assert most > 0.4
    assert 1 / 16 < first < second < third
    assert third > 0.5


def test_sums_of_single_precision_prove_nothing_wrong() -> None:
    training = trained(0, 200, trees=20)
    exact = column(training, 0)
    rounded = Histograms(exact.spaces, exact.weights, exact.sums.astype(np.float32).astype(float))
    beliefs, proven = bins_of_rows(rounded)
    truth = training.bins[:, 0]
    assert (beliefs.argmax(axis=1) == truth)[proven].all()
    assert (beliefs.argmax(axis=1) == truth).mean() > 0.3


@pytest.mark.parametrize("size", [1.0, 1e7, 1e12])
def test_what_float64_rounds_in_large_sums_proves_nothing_wrong(size: float) -> None:
    """Gradients of a squared loss, few values of which each comes often, added in orders drawn anew."""
    proofs = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        spaces, truth = rng.random((12, 14)) < 0.5, rng.integers(0, 4, 14)
        g = 1.2345678912345 * size * rng.choice([0.1, 0.2, 0.3, -0.1, -0.2, 0.7, 0.4], (12, 14))
        weights, sums = np.stack([g, np.ones((12, 14))], axis=2), np.zeros((12, 4, 2))
        for node, row in product(range(12), rng.permutation(14)):
            sums[node, truth[row]] += spaces[node, row] * weights[node, row]
        beliefs, proven = bins_of_rows(Histograms(spaces, weights, sums))
        assert (beliefs.argmax(axis=1) == truth)[proven].all()
        proofs += proven.sum()
    assert proofs > 300
