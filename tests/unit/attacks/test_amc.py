"""The malicious optimiser of a passive party, against plain loops over scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from vflens.attacks.amc import ActiveModelCompletion
from vflens.numerics.optimizer import OPTIMIZERS, Adam, Optimizer, Sgd
from vflens.types import Array

RATE = 0.05
SETTINGS = {"gain": 0.7, "most": 1.9, "momentum": 0.6}


def gradients() -> Array:
    """60 steps of 7 parameters, which keep, turn or lose their direction."""
    rng = np.random.default_rng(4)
    found: Array = rng.normal(size=(60, 7)) + np.linspace(-2, 2, 7)
    found[20:30, 2] = 0
    found[:, 3] = 0
    return found


def factors(given: Sequence[float], *, gain: float, most: float, momentum: float) -> list[float]:
    """R of each step of one parameter."""
    found, v = [], 0.0
    for g in given:
        before, v = v, momentum * v + (1 - momentum) * g
        r = 1.0 if before == 0 else 1 + gain * v / before
        found.append(min(max(r, 1.0), most))
    return found


def agreed_steps(kind: str, given: Sequence[float]) -> list[float]:
    """The steps of plain descent, or of Adam as Kingma and Ba print it, for one parameter."""
    if kind == "sgd":
        return [-RATE * g for g in given]
    found, m, s = [], 0.0, 0.0
    for t, g in enumerate(given, 1):
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
        found.append(-RATE * (m / (1 - 0.9**t)) / ((s / (1 - 0.999**t)) ** 0.5 + 1e-8))
    return found


def lengthened(kind: str, **settings: float) -> Optimizer:
    return ActiveModelCompletion(**settings).optimizer(OPTIMIZERS[kind](7, RATE), 7, np.zeros)


def path(optimizer: Optimizer, theta: Any, given: Any) -> list[Any]:
    """The parameters after each step."""
    found = []
    for gradient in given:
        optimizer.update(theta, gradient)
        found.append(theta + 0)
    return found


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_each_step_is_that_of_the_agreed_optimiser_times_r(kind: str) -> None:
    found = np.diff(path(lengthened(kind, **SETTINGS), np.zeros(7), gradients()), axis=0, prepend=0)
    columns = gradients().T.tolist()
    r = np.array([factors(g, **SETTINGS) for g in columns]).T
    steps = np.array([agreed_steps(kind, g) for g in columns]).T
    np.testing.assert_allclose(found, r * steps, rtol=1e-7, atol=1e-13)
    # All three cases come up: nothing added, something, and the most.
    assert (r == 1).any()
    assert ((r > 1) & (r < 1.9)).any()
    assert (r == 1.9).any()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_largest_factor_of_1_leaves_every_bit_of_the_agreed_steps(kind: str) -> None:
    theta = np.random.default_rng(1).normal(size=7)
    agreed = path(OPTIMIZERS[kind](7, RATE), theta.copy(), gradients())
    found = path(lengthened(kind, most=1.0), theta.copy(), gradients())
    assert np.array(agreed).tobytes() == np.array(found).tobytes()


def test_torch_s_vectors_take_the_same_steps() -> None:
    attack = ActiveModelCompletion(**SETTINGS)
    given = torch.tensor(gradients())

    def zeros(shape: tuple[int, ...]) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.float64)

    made = attack.optimizer(Adam(7, RATE, zeros), 7, zeros)
    found = torch.stack(path(made, zeros((7,)), given)).numpy()
    expected = path(lengthened("adam", **SETTINGS), np.zeros(7), gradients())
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_means_that_faded_away_do_not_overflow() -> None:
    """A quotient by a subnormal number would: r is the largest."""
    made = ActiveModelCompletion(momentum=0.0).optimizer(Sgd(1, 1.0), 1, np.zeros)
    theta = np.zeros(1)
    for gradient in (5e-324, 1.0):
        made.update(theta, np.array([gradient]))
    np.testing.assert_allclose(theta, [-5.0], rtol=1e-15)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_what_it_keeps_restores_it(kind: str) -> None:
    whole, first, second = (lengthened(kind, **SETTINGS) for _ in range(3))
    theta = np.zeros(7)
    path(first, theta, gradients()[:25])
    kept = {name: np.array(a) for name, a in first.state().items()}
    path(first, theta.copy(), gradients()[25:30])  # leaves what was kept
    second.load(kept)
    path(second, theta, gradients()[25:])
    expected = path(whole, np.zeros(7), gradients())[-1]
    assert theta.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("gain", v) for v in (0, -1, 2e6, float("nan"))),
        *(("most", v) for v in (0.99, 2e6, float("nan"))),
        *(("momentum", v) for v in (-0.1, 1, float("nan"))),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        ActiveModelCompletion(**{name: value})
