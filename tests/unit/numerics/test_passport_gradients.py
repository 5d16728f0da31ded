"""Gradients of rows that share a passport's keys: what they give away, beside Theorem 1's guesser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from vflens.models.networks.passport import PassportLayer
from vflens.numerics.gradients.first_layer import layer_input
from vflens.numerics.gradients.passports import Unkeyed, behind_passport
from vflens.numerics.theory.fedadob import log_recovery_probability
from vflens.types import Array

D, OUTPUTS, ROWS = 20, 12, 40
LARGEST_MEAN = 50.0
X, LABELS = np.random.default_rng(1).random((ROWS, D)), np.random.default_rng(2).integers(0, 4, ROWS)
MEAN = np.full(D, 0.5)  # of the law, not of the rows


def _passport(**layer_has: Any) -> PassportLayer:
    torch.manual_seed(3)
    passport = PassportLayer(
        nn.Linear(D, OUTPUTS, dtype=torch.float64),
        largest_mean=LARGEST_MEAN,
        sigma=1.0,
        redraw_means=False,
        order="paper",
        rng=np.random.default_rng(4),
        **layer_has,
    )
    passport.rekey(np.random.default_rng(5))
    return passport


def _gradients(model: nn.Module, parameters: Sequence[torch.Tensor]) -> list[Array]:
    """The gradients of every row's own loss in ``parameters``, each (n, …)."""
    rows = zip(torch.tensor(X), torch.tensor(LABELS), strict=True)
    losses = (cross_entropy(model(x[None]), y[None]) for x, y in rows)
    each = [torch.autograd.grad(loss, parameters) for loss in losses]
    return [torch.stack(part).numpy() for part in zip(*each, strict=True)]


def _attacked(passport: PassportLayer, *, rekeyed: bool = False) -> Unkeyed:
    """From the gradients in the weights of the passport's layer, of the next one and in its bias alone."""
    torch.manual_seed(6)
    last = nn.Linear(OUTPUTS, 4, dtype=torch.float64)
    model = nn.Sequential(passport, _Squashed(), last)
    if rekeyed:
        seeds = iter(range(100, 100 + ROWS))
        model.register_forward_pre_hook(lambda *_: passport.rekey(np.random.default_rng(next(seeds))))
    weight, behind, bias = _gradients(model, [passport.layer.weight, last.weight, last.bias])
    h, _ = layer_input(behind, bias)
    output = (bias @ last.weight.detach().numpy()) * (1 - h**2) / 100
    return behind_passport(weight, output, MEAN)


class _Squashed(nn.Module):
    """Tanh of a hundredth, which large keys do not saturate."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x / 100)


def test_gradients_of_rows_under_one_pair_of_keys_give_the_rows_away() -> None:
    passport = _passport()
    found = _attacked(passport)
    assert found.shared == pytest.approx(1, abs=1e-9)
    assert found.unique < 0.9
    keys = np.stack([key.numpy() for key in passport.keys(torch.tensor(X))])
    np.testing.assert_allclose(keys @ found.plane.T @ found.plane, keys, rtol=0, atol=1e-5)
    beside = np.eye(D) - found.plane.T @ found.plane
    true, guessed = X @ beside, found.x @ beside
    factor = (true * guessed).sum() / (guessed**2).sum()
    np.testing.assert_allclose(factor * guessed, true, rtol=0, atol=1e-6)
    assert factor == pytest.approx(1, abs=0.1)
    scale = passport.folded().weight[:, 0] / passport.layer.weight[:, 0]
    np.testing.assert_allclose(found.scale / factor, scale.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(found.x @ found.plane.T, np.tile(MEAN @ found.plane.T, (ROWS, 1)), atol=1e-9)


def test_it_errs_less_than_any_guess_of_the_keys_does() -> None:
    found = _attacked(_passport())
    mse, blind = ((found.x - X) ** 2).mean(), ((MEAN - X) ** 2).mean()
    assert mse < 0.15 * blind
    farthest = float(np.linalg.norm(found.x - X, axis=1).max())
    assert log_recovery_probability(farthest, LARGEST_MEAN, D) < math.log(1e-20)


def test_so_they_do_behind_the_tanh_of_the_authors_layer() -> None:
    """γ and β are tanh of what they were: other factors of the same keys."""
    found = _attacked(_passport(normalise="authors", keys="fixed"))
    assert found.shared == pytest.approx(1, abs=1e-9)
    assert ((found.x - X) ** 2).mean() < 0.15 * ((MEAN - X) ** 2).mean()


def test_keys_of_each_row_share_no_plane() -> None:
    found = _attacked(_passport(), rekeyed=True)
    assert found.shared < 1 - 1e-4


def test_in_the_theorems_setting_the_mean_of_the_rows_reveals_the_key() -> None:
    """H = W (x + s), with s a key of the passport layer: all rows err by the same small vector."""
    passport = _passport()
    key = passport.keys(torch.tensor(X))[1]
    layer, last = passport.layer, nn.Linear(OUTPUTS, 4, dtype=torch.float64)
    shift = nn.Parameter(layer.weight.detach() @ key)

    class Shifted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ layer.weight.T + shift + (layer.weight - layer.weight.detach()) @ key

    weight, bias = _gradients(nn.Sequential(Shifted(), _Squashed(), last), [layer.weight, shift])
    seen, misfit = layer_input(weight, bias)
    assert misfit.max() < 1e-9
    found = seen.mean(axis=0) - MEAN
    x = seen - found
    np.testing.assert_allclose(found - key.numpy(), X.mean(axis=0) - MEAN, rtol=0, atol=1e-9)
    np.testing.assert_allclose(x - X, np.tile(MEAN - X.mean(axis=0), (ROWS, 1)), rtol=0, atol=1e-9)
    assert log_recovery_probability(float(np.linalg.norm(x - X, axis=1).max()), LARGEST_MEAN, D) < -40


@pytest.mark.parametrize("shape", [(2, 8, 9), (5, 8, 3)])
def test_too_few_rows_or_columns_are_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="give three rows of four at least"):
        behind_passport(np.ones(shape), np.ones(shape[:2]), np.ones(shape[2]))
