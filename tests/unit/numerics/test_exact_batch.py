"""The rows of a batch from its gradient in a layer before a ReLU, which torch's autograd takes here."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from thinned import first
from torch import nn
from torch.nn.functional import cross_entropy

from vflens.experiments.outcome.batches import HIDDEN, fresh, inverted, slopes, update_gradient
from vflens.numerics.gradients.exact_batch import ExactBatch, exact_batch
from vflens.score.batches import matched_mse
from vflens.types import Array

EXACT = 1e-18  # of a mean squared error, in float64
D = 30


def _network(
    *hidden: int, classes: int = 2, dtype: torch.dtype = torch.float64, seed: int = 1
) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = [nn.Linear(a, b, dtype=dtype) for a, b in pairwise((D, *hidden, classes))]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


def _rows(n: int, classes: int = 2, seed: int = 2) -> tuple[Array, Array]:
    """Half of the columns are 0 or 1, as those of categories are."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, D))
    x[:, ::2] = x[:, ::2] > 0.5
    return x, rng.integers(0, classes, n)


def _first(model: nn.Sequential) -> tuple[Array, Array]:
    weight, bias = [*model.parameters()][:2]
    return weight.detach().double().numpy(), bias.detach().double().numpy()


def _gradient(model: nn.Sequential, x: Array, y: Array) -> tuple[Array, Array]:
    like = next(model.parameters())
    loss = cross_entropy(model(torch.tensor(x).to(like)), torch.tensor(y))
    found = torch.autograd.grad(loss, [*model.parameters()][:2])
    return found[0].double().numpy(), found[1].double().numpy()


def _slopes(model: nn.Sequential, classes: int = 2) -> Any:
    """Row by row and label by label: the gradient in the bias is that in the layer's output."""

    def each(x: Array) -> Array:
        whole = model.double()
        return np.array([[_gradient(whole, r[None], np.array([c]))[1] for c in range(classes)] for r in x])

    return each


def _found(model: nn.Sequential, x: Array, y: Array, **more: Any) -> ExactBatch | None:
    return exact_batch(_gradient(model, x, y), _first(model), len(x), np.random.default_rng(3), **more)


@pytest.mark.parametrize(("hidden", "n"), [((60, 40), 1), ((60, 40), 6), ((80, 40, 30), 9)])
@pytest.mark.parametrize("known", [True, False])
def test_all_rows_behind_several_layers_are_exact(hidden: tuple[int, ...], n: int, known: bool) -> None:
    model, (x, y) = _network(*hidden), _rows(n)
    found = _found(model, x, y, slopes=_slopes(model) if known else None)
    assert found is not None
    assert matched_mse(found.x, x)[0] < EXACT
    assert found.misfit < 1e-9 if known else np.isnan(found.misfit)


def test_one_known_layer_of_two_classes_takes_vectors_of_two_values() -> None:
    """Error signals of two rows are then parallel where both are awake."""
    model, (x, y) = _network(40), _rows(12)
    weight = [*model.parameters()][2].detach().numpy()
    found = _found(model, x, y, slopes=_slopes(model), behind=weight[1] - weight[0])
    assert found is not None
    assert matched_mse(found.x, x)[0] < EXACT
    assert _found(model, x, y, slopes=_slopes(model)) is None


def test_a_hard_batch_takes_all_that_earlier_starts_left() -> None:
    """Directions that the forward pass corrects, and units that are nearly 0 as well as those that are."""
    rng = np.random.default_rng((3, 9))
    x = rng.random((9, D))
    x[:, ::2] = x[:, ::2] > 0.5
    layers = fresh((D, 60, 40, 2), rng)
    gradient = update_gradient(x, rng.integers(0, 2, 9), layers, 0.05, "float64")
    known = partial(slopes, layers=layers)
    found = exact_batch((gradient[0], gradient[1]), layers[0], 9, np.random.default_rng(3), slopes=known)
    assert found is not None
    assert matched_mse(found.x, x)[0] < EXACT


def test_ten_classes_need_no_second_layer() -> None:
    model, (x, y) = _network(60, classes=10), _rows(8, classes=10)
    found = _found(model, x, y, slopes=_slopes(model, 10))
    assert found is not None
    assert matched_mse(found.x, x)[0] < EXACT


def test_rounding_of_float32_is_what_is_left() -> None:
    model, (x, y) = _network(60, 40, dtype=torch.float32), _rows(6)
    gradient, layer = _gradient(model, x, y), _first(model)
    found = exact_batch(gradient, layer, 6, np.random.default_rng(3), slopes=_slopes(model))
    assert found is not None
    assert 1e-18 < matched_mse(found.x, x)[0] < 1e-10


def _rounded(values: Array, step: float = 2.0**-20) -> Array:
    return np.asarray(np.round(values / step) * step)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_the_bound_holds_for_each_row(known: bool, seed: int) -> None:
    """A row whose label is sure sends a small error signal, of which rounding is a large part."""
    model, (x, y) = _network(60, 40), _rows(3, seed=seed)
    with torch.no_grad():
        [*model.parameters()][4].mul_(30)
    weight, bias = _gradient(model, x, y)
    more = {"slopes": _slopes(model) if known else None}
    found = exact_batch(
        (_rounded(weight), _rounded(bias)), _first(model), 3, np.random.default_rng(3), **more
    )
    assert found is not None
    off = np.abs(found.x[:, None] - x).max(axis=2).min(axis=1)
    assert (off < found.bound).all()
    assert (found.bound < (30 if known else 1000) * off).all()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", [1, 55, 73, 113, 151])
def test_no_narrow_network_proves_a_wrong_row(known: bool, seed: int) -> None:
    """Two rows that wake the same units everywhere look like their mean, twice; other directions nearly fit
    the gradient of the first layer alone.
    """
    rng = np.random.default_rng(seed)
    width, n = int(rng.integers(4, 20)), int(rng.integers(2, 6))
    x = rng.random((n, 6))
    x[:, ::2] = x[:, ::2] > 0.5
    layers = fresh((6, width, 8, 2), rng)
    gradient = update_gradient(x, rng.integers(0, 2, n), layers, 0.05, "float32")
    known_slopes = partial(slopes, layers=layers) if known else None
    first, draws = (gradient[0], gradient[1]), np.random.default_rng(3)
    found = exact_batch(first, layers[0], n, draws, slopes=known_slopes)
    if found is None:
        assert (known, seed) not in {(True, 1), (True, 113)}  # there the mean is found, without a proof
        return
    off = np.abs(found.x[:, None] - x).max(axis=2).min(axis=1)
    assert (off < found.bound).all()


def test_rows_that_wake_the_same_units_are_not_told_apart_by_one_layer() -> None:
    """Ten classes give two rows signals of two directions, which any mixture of both rows fits."""
    model, (x, y) = _network(60, classes=10), _rows(4, classes=10)
    x[1], y[1] = x[0], (y[0] + 1) % 10
    x[1, 1] += 0.01
    awake = x @ _first(model)[0].T + _first(model)[1] > 0
    np.testing.assert_array_equal(awake[0], awake[1])
    assert _found(model, x, y) is None


@pytest.mark.parametrize("labels", [[0, 0], [0, 1]])
def test_equal_rows_come_as_often_as_they_are_there(labels: list[int]) -> None:
    model, (x, y) = _network(60, 40), _rows(6)
    x[1], y[:2] = x[0], labels
    found = _found(model, x, y, slopes=_slopes(model))
    assert found is not None
    assert matched_mse(found.x, x)[0] < EXACT
    assert _found(model, x, y) is None  # how often, the first layer alone does not tell


def test_rows_that_wake_the_same_units_are_not_proven() -> None:
    """Behind one layer of two classes they are one row, their weighted mean, to the gradient of the first."""
    model, (x, y) = _network(40), _rows(4)
    x[1] = x[0]
    x[1, 1] += 0.01
    y[:2] = 0
    with torch.no_grad():
        last = [*model.parameters()][2]
        last.mul_(100)  # the two rows have other probabilities
    weight = last.detach().numpy()
    more: dict[str, Any] = {"slopes": _slopes(model), "behind": weight[1] - weight[0]}
    layer = _first(model)
    awake = x @ layer[0].T + layer[1] > 0
    np.testing.assert_array_equal(awake[0], awake[1])
    assert _found(model, x, y, **more) is None


def _smooth() -> nn.Sequential:
    model = _network(60, 40)
    layers = list(model)
    return nn.Sequential(layers[0], nn.Tanh(), *layers[2:])


@pytest.mark.parametrize("what", first(["noise", "another model", "no ReLU", "too many rows", "silence"], 3))
def test_what_is_not_proven_is_not_found(what: str) -> None:
    model = _smooth() if what == "no ReLU" else _network(60, 40)
    x, y = _rows(45 if what == "too many rows" else 6)
    gradient, layer = _gradient(model, x, y), _first(model)
    if what == "noise":
        gradient = gradient[0] + np.random.default_rng(5).normal(0, 1e-3, gradient[0].shape), gradient[1]
    if what == "silence":
        gradient = 0 * gradient[0], 0 * gradient[1]
    if what == "another model":  # labels and their number fit, the size of the signals does not
        with torch.no_grad():
            [*model.parameters()][4].mul_(1.05)
    rng = np.random.default_rng(3)
    assert exact_batch(gradient, layer, len(x), rng, slopes=_slopes(model)) is None


def test_one_seed_one_answer() -> None:
    model, (x, y) = _network(60, 40), _rows(8)
    first, second = (_found(model, x, y, slopes=_slopes(model)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.x.tobytes() == second.x.tobytes()


@pytest.mark.facts
def test_directions_that_depend_on_one_another_prove_nothing() -> None:
    """Two patterns of units gave one direction in the third of these batches."""
    drawn = np.random.default_rng(3)
    x = np.column_stack([drawn.normal(size=2000).round(4) for _ in range(12)])
    x, rng = (x - x.min(axis=0)) / np.ptp(x, axis=0), np.random.default_rng((0, 12))
    for _ in range(3):
        places, layers = rng.choice(len(x), 12, replace=False), fresh((12, *HIDDEN, 2), rng)
        assert inverted(x[places], rng.integers(0, 2, 12), layers, rng) == 0
