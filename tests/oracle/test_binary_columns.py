"""Two-valued columns behind an affine map, against a search of all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from laboratory import federation, figures

from vflens.datasets.synthetic import Synthetic
from vflens.numerics.binary_columns import binary_columns, matched
from vflens.tables.table import Table
from vflens.types import Array


def _mixed(binary: Array, others: int, noise: float = 0.0) -> Array:
    """An affine image of ``binary`` and of ``others`` uniform columns."""
    rng = np.random.default_rng(1)
    x = np.column_stack([binary, rng.random((len(binary), others))])
    mixed = x @ rng.normal(size=(x.shape[1], x.shape[1])) + rng.normal(size=x.shape[1])
    return np.asarray(mixed + noise * rng.normal(size=mixed.shape))


def _every(x: Array) -> Array:
    """All two-valued columns of the span of ``x`` and 1, of a column and what it leaves the rarer: each is
    determined by its values in d + 1 independent rows.
    """
    basis = np.column_stack([x, np.ones(len(x))])
    rows = list[int]()
    for i in range(len(x)):
        if np.linalg.matrix_rank(basis[[*rows, i]]) > len(rows):
            rows.append(i)
    found = dict[bytes, Array]()
    for letters in product((0.0, 1.0), repeat=len(rows)):
        y = basis @ np.linalg.solve(basis[rows], letters)
        if np.abs(y * (y - 1)).max() < 1e-6 and 0 < y.round().sum() < len(y):
            split = y.round() == 1
            split = split if 2 * split.sum() <= len(split) else ~split
            found[split.tobytes()] = split
    return np.column_stack(list(found.values())).astype(float)


@pytest.mark.parametrize("others", [0, 3])
def test_what_an_exhaustive_search_finds_is_found_or_a_union_of_it(others: int) -> None:
    rng = np.random.default_rng(0)
    binary = (rng.random((101, 4)) < [0.05, 0.2, 0.4, 0.49]).astype(float)
    mixed = _mixed(binary, others)
    found = binary_columns(mixed, 101, 1e-6, np.random.default_rng(2))
    assert found.shape == (101, 4)
    assert [matched(column, found) for column in binary.T] == [1, 1, 1, 1]
    every = _every(mixed)
    assert [matched(column, every) for column in found.T] == [1, 1, 1, 1]
    spanned = np.column_stack([np.ones(len(found)), found, every])
    assert np.linalg.matrix_rank(spanned) == 5  # the others are unions of these


def test_of_a_category_the_parts_are_found_and_no_unions() -> None:
    part = np.random.default_rng(0).choice(4, size=300, p=[0.1, 0.15, 0.25, 0.5])
    category = np.eye(4)[part]
    found = binary_columns(_mixed(category[:, 1:], 2), 300, 1e-6, np.random.default_rng(2))
    assert found.shape == (300, 3)
    for j in range(3):  # the fourth is what the others leave
        assert matched(category[:, j], found) == 1


def test_columns_of_many_values_are_no_columns_of_two() -> None:
    nothing = np.zeros((200, 0))
    assert binary_columns(_mixed(nothing, 5), 200, 0.02, np.random.default_rng(2)).shape == (200, 0)
    assert np.isnan(matched(np.ones(4), np.random.default_rng(0).random((4, 2))))


def test_a_little_noise_changes_no_row() -> None:
    binary = (np.random.default_rng(0).random((400, 3)) < 0.3).astype(float)
    found = binary_columns(_mixed(binary, 2, noise=0.01), 400, 0.02, np.random.default_rng(2))
    assert [matched(column, found) for column in binary.T] == [1, 1, 1]


def test_matches_count_what_a_column_leaves() -> None:
    truth = np.array([0.0, 0, 1, 1])
    assert matched(truth, np.array([[1.0, 0.3], [1, 0.2], [0, 0.1], [1, 0.9]])) == 0.75


def test_training_in_the_clear_gives_columns_of_two_values_away_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Synthetic.load

    def with_binary_columns(self: Synthetic) -> Table:
        table = load(self)
        features = table.features.copy()
        features[:, 4:7] = features[:, 4:7] > np.quantile(features[:, 4:7], 0.7, axis=0)
        return replace(table, features=features)

    monkeypatch.setattr(Synthetic, "load", with_binary_columns)
    federation(
        tmp_path,
        attacks=[{"name": "binary_columns", "sweeps": 100}, {"name": "clear_features"}],
        training={"epochs": 40, "batch_size": 24, "learning_rate": 0.05},
        disclose=[],
        data={"name": "synthetic", "rows": 150, "features": 8, "classes": 3, "informative": 4},
    ).run()
    found = figures(tmp_path / "passive")
    for name in ("x4", "x5", "x6"):
        assert found["column_match", "binary_columns", name] == 1
        assert 0.6 < found["column_blind_match", "binary_columns", name] < 0.8
    assert ("column_match", "binary_columns", "x7") not in found  # of many values
    assert not [key for key in found if key[:2] == ("column_match", "clear_features")]  # it names none
    assert found["affine_r2", "binary_columns", ""] > 0.95
