"""Rows and labels from gradients by descent, exact where enough equations say so; L-BFGS by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gradientcases import gradients_of
from scipy.optimize import rosen
from thinned import first
from torch import Tensor, nn

from vflens.attacks.helpers.gradients.inverted import BatchShape, Guessed, cosine_inversion, deep_leakage
from vflens.attacks.helpers.gradients.lbfgs import minimised
from vflens.attacks.helpers.gradients.matching import Matching
from vflens.score.batches import matched_mse
from vflens.types import Array, ColumnInfo

D, CLASSES = 12, 5
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, 4)) for i in range(D))
EXACT = 1e-9  # of numbers in [0, 1]: float64 loses half its digits at most


def _model(*activation: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    behind = (
        (nn.Linear(D, 16), *activation, nn.Linear(16, CLASSES)) if activation else (nn.Linear(D, CLASSES),)
    )
    return nn.Sequential(*behind).to(torch.float64)


def _case(model: nn.Module, m: int, n: int) -> tuple[dict[str, Array], Array, Array]:
    """Observed gradients, the rows (m, n, d) and labels (m, n) behind them."""
    rng = np.random.default_rng(0)
    x, labels = rng.random((m, n, D)), np.stack([rng.permutation(CLASSES)[:n] for _ in range(m)])
    return gradients_of(model, x, np.eye(CLASSES)[labels]), x, labels


def _guessed(
    model: nn.Module, gradients: dict[str, Array], n: int, seed: int = 1, **settings: Any
) -> Guessed:
    shape = BatchShape(n, COLUMNS, CLASSES)
    matching, rng = Matching(model, gradients), np.random.default_rng(seed)
    return deep_leakage(matching, shape, rng, **({"steps": 100} | settings))


@pytest.mark.parametrize("activation", first([((),), ((nn.Sigmoid(),),), ((nn.Tanh(),),)], 2))
def test_a_row_and_its_label_are_found_exactly(activation: tuple[nn.Module, ...]) -> None:
    model = _model(*activation)
    gradients, x, labels = _case(model, 3, 1)
    found = _guessed(model, gradients, 1)
    assert (found.labels.argmax(axis=2) == labels).all()
    np.testing.assert_allclose(found.x, x, rtol=0, atol=EXACT)
    assert found.distance.max() < 1e-20


def test_with_restored_labels_a_network_with_relu_is_inverted_exactly() -> None:
    model = _model(nn.ReLU())
    gradients, x, labels = _case(model, 2, 1)
    found = _guessed(model, gradients, 1, labels=labels, starts=4)
    np.testing.assert_allclose(found.x, x, rtol=0, atol=EXACT)


@pytest.mark.parametrize("activation", first([((nn.Sigmoid(),),), ((),)]))
def test_a_batch_is_found_exactly_up_to_the_order_of_its_rows(activation: tuple[nn.Module, ...]) -> None:
    model = _model(*activation)
    gradients, x, labels = _case(model, 2, 2)
    found = _guessed(model, gradients, 2, starts=6)
    for i in range(2):
        mse, order = matched_mse(found.x[i], x[i])
        assert mse < EXACT**2
        assert (found.labels[i].argmax(axis=1)[order] == labels[i]).all()


def test_one_seed_gives_one_result_and_more_starts_no_worse_one() -> None:
    model = _model(nn.ReLU())
    gradients, _, labels = _case(model, 3, 1)
    few = [_guessed(model, gradients, 1, seed, labels=labels, steps=5) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(few[0].x, few[1].x)
    assert not np.array_equal(few[0].x, few[2].x)
    many = _guessed(model, gradients, 1, labels=labels, steps=5, starts=20)
    assert many.distance.sum() < few[0].distance.sum()


def test_the_answer_is_the_start_of_least_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that hold parts of a batch's starts; no step is taken."""
    monkeypatch.setattr("vflens.attacks.helpers.gradients.inverted._AT_ONCE", {"cpu": 2})
    model = _model(nn.Tanh())
    gradients, _, labels = _case(model, 2, 1)
    found = _guessed(model, gradients, 1, labels=labels, steps=0, starts=3)
    points, matching = np.random.default_rng(1).random((6, 1, D)), Matching(model, gradients)
    y, which = torch.tensor(np.eye(CLASSES)[labels].repeat(3, axis=0)), torch.arange(2).repeat_interleave(3)
    distances = matching.distances(torch.tensor(points), y, which).numpy().reshape(2, 3)
    best = distances.argmin(axis=1)
    np.testing.assert_array_equal(found.x, points.reshape(2, 3, 1, D)[[0, 1], best])
    np.testing.assert_allclose(found.distance, distances.min(axis=1), rtol=1e-9)


def _cosine(model: nn.Module, steps: int = 200, **settings: Any) -> tuple[Guessed, Array]:
    gradients, x, labels = _case(model, 2, 1)
    matching, shape = Matching(model, gradients, "cosine"), BatchShape(1, COLUMNS, CLASSES)
    rng = np.random.default_rng(1)
    return cosine_inversion(matching, shape, labels, rng, steps=steps, starts=3, **settings), x


def test_the_direction_of_a_gradient_suffices() -> None:
    """Signed Adam ends with steps of a thousandth of its rate."""
    found, x = _cosine(_model(nn.ReLU()), rate=0.05, smoothness=0.0)
    assert np.abs(found.x - x).max() < 1e-3
    assert found.distance.max() < 1e-6


def test_total_variation_smooths_and_the_box_holds() -> None:
    model = _model(nn.Tanh())
    (plain, _), (smooth, _) = (_cosine(model, 40, smoothness=weight) for weight in (0.0, 0.5))
    assert _variation(smooth.x) < 0.5 * _variation(plain.x)
    for found in (plain, smooth):
        assert (found.x.min() >= 0, found.x.max() <= 1) == (True, True)


def _variation(x: Array) -> float:
    images = x.reshape(-1, 3, 4)
    return float(np.abs(np.diff(images, axis=1)).sum() + np.abs(np.diff(images, axis=2)).sum())


def test_progress_is_reported_step_by_step() -> None:
    model, seen = _model(nn.Tanh()), list[tuple[int, int]]()
    gradients, _, labels = _case(model, 3, 1)

    def note(step: int, distances: Tensor) -> None:
        seen.append((step, len(distances)))

    _guessed(model, gradients, 1, labels=labels, steps=4, progress=note)
    assert seen == [(1, 3), (2, 3), (3, 3), (4, 3)]
    seen.clear()
    _cosine(model, 2, progress=note)
    assert seen == [(1, 6), (2, 6)]


# -- L-BFGS ----------------------------------------------------------------------------------------------


def _of(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Values and gradients of a function of points and numbers."""

    def objective(x: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        values = function(x, which)
        return values.detach(), torch.autograd.grad(values.sum(), x)[0]

    return objective


def _rosenbrock(x: Tensor, which: Tensor) -> Tensor:
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(dim=1)


def test_descents_side_by_side_are_those_of_each_alone() -> None:
    """Rosenbrock's valley; SciPy's function judges the ends."""
    start = torch.tensor(np.random.default_rng(2).uniform(0, 2, (6, 5)))
    ends, values = minimised(_of(_rosenbrock), start, steps=200)
    for i in range(2):
        assert float(values[i]) == pytest.approx(rosen(ends[i].numpy()), rel=1e-9, abs=1e-25)
        alone = minimised(_of(_rosenbrock), start[i : i + 1], steps=200)
        np.testing.assert_allclose(alone[0][0], ends[i], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ends, 1, rtol=0, atol=1e-8)


def test_each_problem_has_its_own_function_and_end() -> None:
    """Quadratic bowls of different widths; the first begins at its minimum, the second is wanted roughly."""
    centres, scales = (
        torch.tensor([[0.0, 0.0], [1.0, -1.0], [5.0, 5.0]]).double(),
        torch.tensor([1, 1e4, 1e-4]),
    )

    def bowl(x: Tensor, which: Tensor) -> Tensor:
        return scales[which] * ((x - centres[which]) ** 2).sum(dim=1)

    ends, values = minimised(_of(bowl), torch.zeros(3, 2, dtype=torch.float64), steps=50, enough=1e-12)
    assert ends[0].tolist() == [0, 0]
    assert (values <= 1e-12).all()
    np.testing.assert_allclose(ends, centres, atol=1e-3)


def test_where_no_step_decreases_the_descent_ends_at_its_start() -> None:
    """A kink, a cliff of NaN, and a plateau."""

    def hard(x: Tensor, which: Tensor) -> Tensor:
        cliff = torch.where(x[:, 0] < 1, torch.nan, x[:, 0])
        return torch.stack([x.abs().sum(dim=1), cliff, 0 * x[:, 0]])[which, torch.arange(len(which))]

    start = torch.tensor([[0.0], [1.0], [3.0]]).double()
    ends, values = minimised(_of(hard), start, steps=20)
    assert (ends.tolist(), values.tolist()) == (start.tolist(), [0, 1, 0])


def test_no_value_is_above_that_of_its_start() -> None:
    start = torch.tensor(np.random.default_rng(3).uniform(-3, 3, (20, 4)))

    def rough(x: Tensor, which: Tensor) -> Tensor:
        return (x.abs() + torch.sin(7 * x)).sum(dim=1)

    found = [minimised(_of(rough), start, steps=steps)[1] for steps in (0, 1, 3, 30)]
    assert (np.diff(np.stack(found), axis=0) <= 0).all()
