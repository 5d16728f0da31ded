"""Rows and labels from a gradient, against rows whose gradient torch's autograd took."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from vflens.numerics.gradients.first_layer import layer_input, single_rows
from vflens.numerics.gradients.labels import batch_labels, label_counts, row_label
from vflens.numerics.gradients.local_steps import gradient_of
from vflens.numerics.gradients.softmax_batch import softmax_batch, softmax_row
from vflens.types import Array

EXACT = 1e-9  # of numbers in [0, 1], from gradients in float64


def _gradient(model: nn.Module, x: Array, y: Array) -> dict[str, Array]:
    """The gradients of the mean loss, by name."""
    model.zero_grad()
    torch.autograd.backward(cross_entropy(model(torch.tensor(x)), torch.tensor(y)))
    return {n: p.grad.numpy().copy() for n, p in model.named_parameters() if p.grad is not None}


def _network(classes: int = 5) -> nn.Module:
    torch.manual_seed(3)
    layers = nn.Linear(7, 6), nn.Tanh(), nn.Linear(6, classes)
    return nn.Sequential(*layers).to(torch.float64)


def _softmax(classes: int, columns: int, size: float) -> nn.Linear:
    torch.manual_seed(4)
    model = nn.Linear(columns, classes, dtype=torch.float64)
    with torch.no_grad():
        model.weight.normal_(0, size), model.bias.normal_(0, size)
    return model


def _parameters(model: nn.Linear) -> tuple[Array, Array]:
    return model.weight.detach().numpy(), model.bias.detach().numpy()


def test_the_input_of_a_linear_layer_with_bias_is_exact() -> None:
    model, rng = _network(), np.random.default_rng(1)
    rows, labels = rng.random((20, 7)), rng.integers(0, 5, 20)
    gradients = [_gradient(model, x[None], label[None]) for x, label in zip(rows, labels, strict=True)]
    found, misfits = zip(*(layer_input(g["0.weight"], g["0.bias"]) for g in gradients), strict=True)
    np.testing.assert_allclose(np.stack(found), rows, rtol=0, atol=EXACT)
    assert max(misfits) < EXACT


def test_of_several_rows_it_is_their_weighted_mean_and_the_misfit_shows_it() -> None:
    model, rng = _network(), np.random.default_rng(1)
    x, y = rng.random((3, 7)), np.array([0, 1, 1])
    alone = [_gradient(model, x[i : i + 1], y[i : i + 1])["0.bias"] for i in range(3)]
    gradient = _gradient(model, x, y)
    found, misfit = layer_input(gradient["0.weight"], gradient["0.bias"])
    weights = np.linalg.lstsq(x.T, found, rcond=None)[0]
    assert weights.sum() == pytest.approx(1)
    expected = [(g / 3) @ gradient["0.bias"] / (gradient["0.bias"] @ gradient["0.bias"]) for g in alone]
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-9)
    assert misfit > 0.01


def test_many_layers_are_answered_at_once_and_one_without_gradient_is_refused() -> None:
    g, x = np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[0.5, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found, misfit = layer_input(g[:, :, None] * x[:, None, :], g)
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-15)
    assert misfit.tolist() == [0, 0]
    with pytest.raises(ValueError, match="the gradient in the bias is 0"):
        layer_input(g[:, :, None] * x[:, None, :], g * np.array([[1.0], [0.0]]))


def test_the_label_of_a_row_is_exact() -> None:
    rng = np.random.default_rng(2)
    model = _network()
    rows, labels = 3 * rng.normal(size=(40, 7)), rng.integers(0, 5, 40)
    gradients = [_gradient(model, x[None], label[None]) for x, label in zip(rows, labels, strict=True)]
    assert [row_label(gradient["2.bias"]) for gradient in gradients] == labels.tolist()


def test_the_labels_of_a_batch_are_counted_exactly_given_the_mean_probability() -> None:
    model, rng = _network(), np.random.default_rng(3)
    for n in (1, 4, 33):
        x, y = rng.normal(size=(n, 7)), rng.integers(0, 5, n)
        with torch.no_grad():
            p = torch.softmax(model(torch.tensor(x)), dim=1).numpy().mean(axis=0)
        bias = _gradient(model, x, y)["2.bias"]
        counts = np.bincount(y, minlength=5)
        assert label_counts(bias, n, p).tolist() == counts.tolist()
        shift = (0.45 / n) * np.array([1, -1, 1, -1, 0])  # below half a row a class, as the docstring says
        assert label_counts(bias, n, p + shift).tolist() == counts.tolist()
        assert label_counts(bias, n, p + 2 * shift).tolist() != counts.tolist()


def test_the_labels_of_a_batch_are_listed_and_of_one_row_need_no_probability() -> None:
    """A confident wrong prediction misleads the count, which supposes a probability, but not the sign."""
    bias = np.array([0.9, -0.95, 0.05])
    assert label_counts(bias, 1, np.array([0.1, 0.1, 0.8])).tolist() == [0, 1, 0]
    sure = np.array([0.998, -0.999, 0.001])
    assert batch_labels(sure, 1, np.array([1.0, 0.0, 0.0])).tolist() == [1]
    p = np.full(3, 1 / 3)
    assert batch_labels(p - np.array([0.25, 0.0, 0.75]), 4, p).tolist() == [0, 2, 2, 2]


def _hidden(width: int, classes: int) -> nn.Module:
    torch.manual_seed(8)
    layers = nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 12), nn.ReLU(), nn.Linear(12, classes)
    return nn.Sequential(*layers).to(torch.float64)


@pytest.mark.parametrize(("rows", "all_found"), [(1, True), (3, True), (12, False)])
def test_units_that_one_row_alone_reaches_show_it_exactly(rows: int, all_found: bool) -> None:
    model, rng = _hidden(80, 4), np.random.default_rng(10)
    x, y = 2 * rng.random((rows, 20)) * (rng.random((rows, 20)) < 0.5), rng.integers(0, 4, rows)
    x = np.minimum(x, 1)
    gradient = _gradient(model, x, y)
    found = single_rows(gradient["0.weight"], gradient["0.bias"], rows)
    assert 1 <= len(found) <= rows
    assert (len(found) == rows) is all_found
    for row in found:
        assert np.abs(x - row).max(axis=1).min() < EXACT


def test_units_that_show_no_row_are_passed_over() -> None:
    weight, bias = np.array([[2.0, 0.0], [2.0, 0.0], [0.3, 0.2]]), np.array([1.0, 1.0, 1.0])
    assert single_rows(weight, bias, 2).shape == (0, 2)  # twice outside the box, once alone
    assert single_rows(np.zeros((3, 2)), np.zeros(3), 2).shape == (0, 2)
    x, g = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 1.002]])
    assert single_rows(g.T @ x, g.sum(axis=0), 2).shape == (0, 2)  # means of one label, almost alike


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0])
def test_one_row_of_softmax_regression_is_exact_without_the_model(size: float) -> None:
    model, rng = _softmax(10, 64, size), np.random.default_rng(5)
    x, y = rng.random((1, 64)), np.array([7])
    gradient = _gradient(model, x, y)
    found = softmax_row(gradient["weight"], gradient["bias"])
    np.testing.assert_allclose(found.x, x, rtol=0, atol=EXACT)
    assert (found.labels.tolist(), found.misfit < EXACT) == ([7], True)


@pytest.mark.parametrize("size", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_a_batch_of_distinct_labels_is_exact_in_softmax_regression(n: int, size: float) -> None:
    """Five of six classes at most: as many unknown numbers as equations."""
    model, rng = _softmax(6, 40, size), np.random.default_rng(n)
    for _ in range(3):
        x, y = rng.random((n, 40)), rng.permutation(6)[:n]
        gradient = _gradient(model, x, y)
        found = softmax_batch((gradient["weight"], gradient["bias"]), _parameters(model), y)
        assert found.labels.tolist() == sorted(y.tolist())
        np.testing.assert_allclose(found.x, x[np.argsort(y)], rtol=0, atol=EXACT)
        assert found.misfit < EXACT


def test_wrong_labels_show_in_the_misfit() -> None:
    model, rng = _softmax(6, 40, 0.1), np.random.default_rng(9)
    gradient = _gradient(model, rng.random((2, 40)), np.array([0, 1]))
    found = softmax_batch((gradient["weight"], gradient["bias"]), _parameters(model), np.array([0, 2]))
    assert found.misfit > 0.01


@pytest.mark.parametrize("labels", [[0, 0], [0, 1, 2]])
def test_labels_that_repeat_or_fill_all_classes_are_refused(labels: list[int]) -> None:
    model = _softmax(3, 4, 0.1)
    with pytest.raises(ValueError, match="give fewer than 3, all different"):
        softmax_batch((np.ones((3, 4)), np.ones(3)), _parameters(model), np.array(labels))


# -- updates ---------------------------------------------------------------------------------------------


def _update(
    model: nn.Module, x: Array, y: Array, rate: float, *, steps: int = 1, l2: float = 0.0
) -> dict[str, Array]:
    """What ``steps`` of torch's SGD on one batch change, as a client of FedAvg sends it; ``model`` stays."""
    local = deepcopy(model)
    optimizer = torch.optim.SGD(local.parameters(), lr=rate, weight_decay=2 * l2)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.autograd.backward(cross_entropy(local(torch.tensor(x)), torch.tensor(y)))
        optimizer.step()
    before, after = (dict(m.named_parameters()) for m in (model, local))
    return {name: (after[name] - before[name]).detach().numpy() for name in before}


def test_the_update_of_one_step_is_the_gradient_and_gives_its_row_away() -> None:
    model, rng = _softmax(10, 64, 0.1), np.random.default_rng(6)
    x, y = rng.random((1, 64)), np.array([3])
    penalty = {name: 2 * 0.01 * p.detach().numpy() for name, p in model.named_parameters()}
    gradient = gradient_of(_update(model, x, y, 0.05, l2=0.01), 0.05, penalty=penalty)
    for name, expected in _gradient(model, x, y).items():
        np.testing.assert_allclose(gradient[name], expected, rtol=0, atol=1e-13)
    found = softmax_row(gradient["weight"], gradient["bias"])
    np.testing.assert_allclose(found.x, x, rtol=0, atol=EXACT)
    assert found.labels.tolist() == [3]


def test_that_of_several_steps_nears_the_gradient_as_the_rate_falls() -> None:
    model, rng = _network(), np.random.default_rng(7)
    x, y = rng.random((4, 7)), rng.integers(0, 5, 4)
    true, errors = _gradient(model, x, y), []
    for rate in (0.1, 0.01, 0.001):
        found = gradient_of(_update(model, x, y, rate, steps=5), rate, steps=5)
        errors.append(max(float(np.abs(found[name] - true[name]).max()) for name in true))
    assert errors[0] > 1e-3
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)
    assert errors[2] == pytest.approx(errors[0] / 100, rel=0.2)


def test_labels_of_a_bias_that_is_all_noise_are_those_of_the_probabilities() -> None:
    probabilities = np.array([0.5, 0.25, 0.25])
    np.testing.assert_array_equal(label_counts(np.full(3, 10.0), 8, probabilities), [4, 2, 2])
