"""Gradient inversion in the box and among one-hot rows, against rows that follow in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gradientcases import gradients_of
from scipy.optimize import brentq
from torch import nn

from vflens.attacks.helpers.gradients.table_rows import TableRows, one_hot_groups
from vflens.attacks.helpers.gradients.tabular import Descents, TableBatch, tabular_inversion
from vflens.attacks.tabular_inversion import TabularInversion
from vflens.models.networks.parameters import to_arrays
from vflens.numerics.assignment import in_order_of
from vflens.types import Array, ColumnInfo

_ONE_HOT = {"low": 0.0, "high": 1.0, "alphabet": (0.0, 1.0)}
COLUMNS = (
    ColumnInfo("age"),
    *(ColumnInfo(f"work={name}", **_ONE_HOT) for name in ("a", "b", "c")),  # type: ignore[arg-type]
    ColumnInfo("sick", **_ONE_HOT),  # type: ignore[arg-type]
)
ROW = np.array([[0.35, 0.0, 1.0, 0.0, 0.8]])


def _linear(bias: bool) -> nn.Linear:
    torch.manual_seed(4)
    return nn.Linear(len(COLUMNS), 2, bias=bias, dtype=torch.float64)


def _found(model: nn.Module, x: Array, labels: Array, table: TableRows) -> Array:
    gradient = gradients_of(model, x[None], np.eye(2)[labels][None])
    batch = TableBatch(table, x.shape[1], labels, 2)
    descents = Descents(8, 100, 100, 0.06)
    named = {name: g[0] for name, g in gradient.items()}
    return tabular_inversion(model, named, batch, descents, np.random.default_rng(1)).x


def _with_odds(logits: Sequence[float]) -> nn.Linear:
    """Without a bias: ∇W = (p − e_y) xᵀ gives x up to its length t, and t·(1 − p(t)) takes a value twice."""
    model = _linear(bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0] * len(COLUMNS), [*logits]]))
    return model


def test_of_two_lengths_that_fit_the_gradient_the_one_in_the_box_is_found() -> None:
    """A row of twice the length, outside, gives the same gradient."""
    x = np.array([[0.7, 0.2, 0.6, 0.1, 0.8]])
    model, labels = _with_odds([0.3, 0.5, 0.5, -0.7, 0.45]), np.array([1])
    gradient = gradients_of(model, x[None], np.eye(2)[labels][None])["weight"][0, 0]
    twice = brentq(lambda t: _length(model, x, t) - np.linalg.norm(gradient), 1.3, 5)
    assert (twice * x).max() > 1.2
    np.testing.assert_allclose(_found(model, x, labels, TableRows())[0], x[0], atol=1e-5)


def test_of_two_lengths_in_the_box_the_one_whose_category_sums_to_1_is_found() -> None:
    """A longer row gives the same gradient. In closed form x = u / Σ_group u for a row u of ∇W."""
    x = np.array([[0.2, 0.2, 0.5, 0.3, 0.3]])
    model, labels = _with_odds([1, 0.5, 1, 0.2, 0.47]), np.array([1])
    gradient = gradients_of(model, x[None], np.eye(2)[labels][None])["weight"][0, 0]
    longer = brentq(lambda t: _length(model, x, t) - np.linalg.norm(gradient), 1.3, 1.9)
    assert (longer * x).max() < 1
    closed = gradient / gradient[1:4].sum()
    np.testing.assert_allclose(closed, x[0], atol=1e-12)
    found = _found(model, x, labels, TableRows(one_hot_groups(COLUMNS)))
    np.testing.assert_allclose(found[0], closed, atol=1e-5)


def _length(model: nn.Linear, x: Array, t: float) -> float:
    """The row of ∇W for ``t`` times ``x``, labelled 1."""
    odds = float(model.weight.detach().numpy()[1] @ x[0]) * t
    return float(t * np.linalg.norm(x) / (1 + np.exp(odds)))


def test_one_row_of_softmax_regression_is_exact_in_a_round() -> None:
    model, labels = _linear(bias=True), np.array([0])
    gradient = gradients_of(model, ROW[None], np.eye(2)[labels][None])
    found = TabularInversion(starts=4, steps=200).reconstruct(_view(model, gradient, 1), rng=_rng())
    np.testing.assert_allclose(found.values, ROW, atol=1e-5)
    assert (found.extras["spread"].shape, found.extras["distance"].shape) == (ROW.shape, (1,))
    assert found.extras["spread"].max() < 1e-2  # all descents agree, and the adversary sees it


def _view(model: nn.Module, gradients: dict[str, Array], n: int) -> Any:
    return SimpleNamespace(
        target="client",
        rows=np.arange(n, dtype=np.int32),
        round=0,
        n_classes=2,
        device="cpu",
        progress=lambda stage, done, total: None,
        metadata=lambda: COLUMNS,
        parameters=lambda number: to_arrays(model.state_dict()),
        gradient=lambda number: {name: g[0] for name, g in gradients.items()},
    )


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_every_row_is_in_the_box_and_has_one_category() -> None:
    free = torch.tensor(np.random.default_rng(0).normal(scale=9, size=(4, len(COLUMNS))))
    rows = TableRows(one_hot_groups(COLUMNS)).rows(free).numpy()
    assert ((rows >= 0) & (rows <= 1)).all()
    np.testing.assert_allclose(rows[:, 1:4].sum(axis=1), 1)
    odds = np.exp(free.numpy()[:, 1] - free.numpy()[:, 2])
    np.testing.assert_allclose(rows[:, 1] / rows[:, 2], odds)
    np.testing.assert_allclose(rows[:, 0], 1 / (1 + np.exp(-free.numpy()[:, 0])))


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["a=x", "a=y", "b=x", "b=y"], ((0, 1), (2, 3))),
        (["a=x", "c", "a=y"], ()),  # apart, or alone: no group
        (["a=x=1", "a=x=2"], ((0, 1),)),
    ],
)
def test_groups_are_neighbours_of_one_name(names: list[str], groups: tuple[tuple[int, ...], ...]) -> None:
    columns = [ColumnInfo(name, **_ONE_HOT) for name in names]  # type: ignore[arg-type]
    assert one_hot_groups(columns) == groups
    assert one_hot_groups([ColumnInfo(name) for name in names]) == ()


def test_rows_are_matched_within_their_label_as_exhaustion_does() -> None:
    rng = np.random.default_rng(2)
    reference, batches = rng.random((5, 3)), rng.random((4, 5, 3))
    labels = np.array([0, 0, 0, 1, 1])
    ordered = in_order_of(reference, batches, labels)
    assert ordered.shape == batches.shape
    for batch, found in zip(batches, ordered, strict=True):
        orders = [(*a, *b) for a in permutations(range(3)) for b in permutations((3, 4))]
        best = min(orders, key=lambda order: ((reference - batch[list(order)]) ** 2).sum())
        np.testing.assert_array_equal(found, batch[list(best)])
