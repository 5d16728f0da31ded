"""What saved trees prove of their training rows: the table of ``docs/others.md``, computed again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from boostedmodels import RECORDED, ends, people, saved
from datafiles import needs_file
from sklearn.datasets import load_breast_cancer

from vflens.datasets.grid import Grid
from vflens.experiments.weights.tree_file import read_trees
from vflens.numerics.boosting.later_trees import proven_boxes
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array

PAGE = (Path(__file__).parents[2] / "docs/others.md").read_text(encoding="utf-8")
NEAR = 0.319  # standard deviations by which TimberStrike's configuration lets a value be off


def _rows(data: str) -> list[list[float]]:
    """The page's rows on ``data``: people, and the means of three seeds."""
    lines = [line for line in PAGE.splitlines() if line.startswith(f"| `{data}` |")]
    assert lines
    return [[float(cell.strip().removesuffix(" %")) for cell in line.split("|")[2:-1]] for line in lines]


def _measured(trees: list[Tree], base: float, x: Array, y: Array) -> list[float]:
    """Trees proven; shares of people of certain class, widths of boxes and shares of values near the middle,
    by the first tree and by all.
    """
    found = proven_boxes(trees, base)
    proven = trees[: found.leaves.shape[1]]
    reached = np.stack([ends(tree, x) for tree in proven], axis=1)
    box = (reached[:, None] == found.leaves).all(axis=2).argmax(axis=1)
    np.testing.assert_array_equal(np.bincount(box), found.rows)
    ones = np.bincount(box, y)
    assert ((found.least <= ones) & (ones <= found.most)).all()
    share = np.bincount(reached[:, 0], y) / np.bincount(reached[:, 0])
    certain = np.isin(share, (0, 1))[reached[:, 0]], ((found.most == 0) | (found.least == found.rows))[box]
    measures = [_boxes(proven[:t], reached[:, :t], x) for t in (1, len(proven))]
    shares = np.transpose([[part.mean(), *measure] for part, measure in zip(certain, measures, strict=True)])
    return [len(proven), *(100 * shares).ravel().tolist()]


def _boxes(trees: list[Tree], reached: Array, x: Array) -> tuple[float, float]:
    """The mean width of a row's box, of the range of a column; the share of values near its middle."""
    columns, least, most = np.arange(x.shape[1]), x.min(axis=0), x.max(axis=0)
    lows, highs = zip(*(tree.boxes(columns) for tree in trees), strict=True)
    low = np.max([of[leaf] for of, leaf in zip(lows, reached.T, strict=True)], axis=0).clip(least, most)
    high = np.min([of[leaf] for of, leaf in zip(highs, reached.T, strict=True)], axis=0).clip(least, most)
    near = np.abs((low + high) / 2 - x) <= NEAR * x.std(axis=0)
    return float(((high - low) / (most - least)).mean()), float(near.mean())


def test_people_of_the_recorded_model_are_those_of_the_page() -> None:
    model = read_trees(RECORDED / "bank.ubj")
    x, y = people()
    assert model.training.base is not None
    found = _measured(list(model.trees), float(model.training.base[0]), x.astype(np.float32), y)
    ((n, *stated),) = _rows("bank.ubj")
    assert n == len(y)
    assert found == pytest.approx(stated, abs=0.06)


def _of_seeds(x: Array, y: Array, n: int) -> Array:
    found = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(len(y))[:n]
        part = x[rows].astype(np.float32)
        found.append(_measured(*saved(part, y[rows], [3] * 20), part, y[rows]))
    means: Array = np.mean(found, axis=0)
    return means


@pytest.mark.facts
@pytest.mark.parametrize("row", _rows("breast_cancer"))
def test_people_of_breast_cancer_are_those_of_the_page(row: list[float]) -> None:
    n, *stated = row
    x, y = load_breast_cancer(return_X_y=True)
    assert _of_seeds(x, y, int(n)) == pytest.approx(stated, abs=0.06)


@pytest.mark.facts
@needs_file("Data_for_UCI_named.csv.gz")
@pytest.mark.parametrize("row", _rows("grid"))
def test_people_of_grid_are_those_of_the_page(row: list[float]) -> None:
    n, *stated = row
    table = Grid().load()
    assert table.labels is not None
    assert _of_seeds(table.features, table.labels, int(n)) == pytest.approx(stated, abs=0.06)
