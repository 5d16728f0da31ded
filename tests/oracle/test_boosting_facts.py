"""The tables of ``docs/others.md``, computed again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from thinned import first
from treetraining import Training, trained

from vflens.attacks.helpers.networks.directions import clusters, directions
from vflens.numerics.boosting.histograms import Histograms, bins_of_rows
from vflens.numerics.boosting.instance_spaces import learned, shared_spaces
from vflens.score.labels import named
from vflens.types import Array

PAGE = (Path(__file__).parents[2] / "docs/others.md").read_text(encoding="utf-8")
SEEDS = range(3)


def table(first: str) -> list[list[float]]:
    """The numbers of the page's table whose first column is called ``first``."""
    rows = PAGE.split(f"\n| {first} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[float(cell.strip().removesuffix(" %")) for cell in row.strip("|").split("|")] for row in rows]


def _labels(training: Training, seed: int) -> list[float]:
    """Shares of right labels: of clusters, with ten known labels, with those and own columns, blind."""
    y, points = training.y, shared_spaces(**training.seen_by_passive())
    known = np.concatenate([np.flatnonzero(y == k)[:5] for k in (0, 1)])
    rest = np.setdiff1d(np.arange(len(y)), known)
    ends = directions(points)
    nameless = ends @ clusters(ends, 2, np.random.default_rng(seed)).T
    own = training.bins[:, : training.passive] - training.bins.mean()
    by_labels = [learned(x, known, y[known], 2)[rest].argmax(axis=1) == y[rest] for x in (points, own)]
    by_clusters = named(nameless, y).argmax(axis=1) == y
    return [float(np.mean(right)) for right in (by_clusters, *by_labels)] + [
        float(np.bincount(y).max() / len(y))
    ]


def _bins(training: Training) -> Array:
    """Shares of proven bins and of right ones, of three columns; blind: 16 bins of nearly equal size."""
    seen, found = training.seen_by_active(), []
    weights = np.stack([seen["gradient"], seen["hessian"]], axis=2)[seen["tree"]]
    for j in range(3):
        sums = np.stack([seen["gradient_sums"][:, j], seen["hessian_sums"][:, j]], axis=2)
        believed, proven = bins_of_rows(Histograms(seen["spaces"], weights, sums))
        right = believed.argmax(axis=1) == training.bins[:, j]
        assert right[proven].all()
        found.append([proven.mean(), right.mean(), np.bincount(training.bins[:, j]).max() / len(right)])
    means: Array = np.array(found).mean(axis=0)
    return means


@pytest.mark.parametrize("row", table("trees"))
def test_shares_of_labels_are_those_of_the_page(row: list[float]) -> None:
    trees, *stated = row
    found = [_labels(trained(seed, 569, int(trees)), seed) for seed in SEEDS]
    assert 100 * np.mean(found, axis=0) == pytest.approx(
        stated, abs=0.5
    )  # ties of gains, on other processors


@pytest.mark.parametrize("row", first(table("rounds")))
def test_shares_of_bins_are_those_of_the_page(row: list[float]) -> None:
    rounds, *stated = row
    found = [_bins(trained(seed, 300, int(rounds))) for seed in SEEDS]
    assert 100 * np.mean(found, axis=0) == pytest.approx(
        stated, abs=1.5
    )  # a tie of gains changes later trees
