"""Sparse updates against definitions written out; pruned features in a linear model."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from vflens.defenses._soteria import movements, pruned
from vflens.numerics.updates import largest_numbers, sparse_update
from vflens.types import Array


def _update(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {"weight": rng.normal(size=(3, 4)), "bias": rng.normal(size=3)}


def _flat(update: dict[str, Array]) -> Array:
    return np.concatenate([part.ravel() for part in update.values()])


def test_the_largest_numbers_of_all_arrays_are_sent() -> None:
    update = _update(2)
    sent, left = sparse_update(update, 0.3)
    flat = _flat(update)
    best = sorted(range(15), key=lambda i: -abs(flat[i]))[:5]  # ⌈.3·15⌉
    assert set(np.flatnonzero(_flat(sent)).tolist()) == set(best)
    np.testing.assert_array_equal(_flat(sent) + _flat(left), flat)
    assert {name: part.shape for name, part in sent.items()} == {"weight": (3, 4), "bias": (3,)}


def test_with_error_feedback_nothing_is_lost_and_without_it_much_is() -> None:
    updates = [_update(seed) for seed in range(12)]
    whole, left = sum(map(_flat, updates)), None
    with_it, without_it = np.zeros(15), np.zeros(15)
    for update in updates:
        without_it += _flat(sparse_update(update, 0.2)[0])
        sent, left = sparse_update(update, 0.2, left)
        with_it += _flat(sent)
    assert left is not None
    np.testing.assert_allclose(with_it + _flat(left), whole, rtol=0, atol=1e-12)
    assert np.linalg.norm(with_it - whole) < np.linalg.norm(without_it - whole)


def test_of_equal_magnitudes_the_first_stay() -> None:
    assert largest_numbers(np.array([[1.0, -1.0, 1.0], [0.0, 2.0, -3.0]]), 0.5).tolist() == [
        [1.0, -1.0, 0.0],
        [0.0, 2.0, -3.0],
    ]


def test_the_movement_of_a_linear_feature_is_its_distance_from_zero() -> None:
    """To make w·x + b zero, x moves |w·x + b|/‖w‖: exact, not only to first order."""
    torch.manual_seed(1)
    model, x = nn.Linear(4, 6, dtype=torch.float64), torch.rand(5, 4, dtype=torch.float64)
    with torch.no_grad():
        model.weight[2] = 0  # a feature that does not depend on x
    x.requires_grad_()
    found = movements(model(x), x)
    weight, bias = model.weight.detach().numpy(), model.bias.detach().numpy()
    lengths = np.where(weight.any(axis=1), np.linalg.norm(weight, axis=1), np.inf)
    expected = abs(x.detach().numpy() @ weight.T + bias) / lengths
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_the_features_that_move_the_input_most_are_pruned() -> None:
    h = np.array([[5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]])
    moved = np.array([[0.1, 0.9, 0.2, 0.8], [3.0, 1.0, 1.0, 0.0]])
    assert pruned(h, moved, 0.5).tolist() == [[5.0, 0.0, 7.0, 0.0], [0.0, 0.0, 3.0, 4.0]]
    assert pruned(h, moved, 0.2).tolist() == h.tolist()
    assert h[0, 1] == 6.0  # the caller's array stays
