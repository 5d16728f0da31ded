"""Bins of a measure: how often one holds one row alone, and what it then shows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from alone import alone_in_bins, expected_alone
from scipy.stats import norm
from torch import nn
from torch.nn.functional import cross_entropy

from vflens.numerics.gradients.imprint import bin_means, equal_bins


@pytest.mark.parametrize("bins", [1, 2, 7, 100])
def test_bins_hold_the_same_mass(bins: int) -> None:
    ends = equal_bins(0.3, 0.05, bins)
    masses = np.diff(norm.cdf([*ends, np.inf], 0.3, 0.05))
    np.testing.assert_allclose(masses, 1 / bins, atol=1e-9)
    assert ends[0] < 0  # a measure of 0 is in the first bin


@pytest.mark.parametrize(("rows", "bins"), [(8, 8), (20, 40), (64, 128), (64, 256)])
def test_as_many_rows_are_alone_as_the_closed_form_says(rows: int, bins: int) -> None:
    """Four deviations of the mean of 2,000 draws, of which none varies by more than its number of rows."""
    rng, ends = np.random.default_rng(4), equal_bins(0.3, 0.05, bins)
    found = [len(alone_in_bins(rng.normal(0.3, 0.05, rows), ends)) for _ in range(2000)]
    assert abs(np.mean(found) - expected_alone(rows, bins)) < 4 * np.std(found) / 2000**0.5
    assert np.std(found) > 0


def test_a_bin_shows_its_row_or_the_mean_of_its_rows() -> None:
    """Gradients by autograd, of a first layer before a ReLU and a layer that weighs its units alike."""
    rng, units, x = np.random.default_rng(5), 12, np.linspace(0.05, 0.95, 7)[:, None] * np.ones((7, 3))
    x[1] = x[0] + 0.001  # the same bin
    first, second = nn.Linear(3, units, dtype=torch.float64), nn.Linear(units, 4, dtype=torch.float64)
    ends = np.concatenate([[-1.0], np.arange(1, units) / units])
    with torch.no_grad():
        first.weight[:], first.bias[:] = 1 / 3, torch.tensor(-ends)
        second.weight[:] = torch.tensor(rng.normal(size=(4, 1)))
    logits = second(torch.relu(first(torch.tensor(x))))
    torch.autograd.backward(cross_entropy(logits, torch.tensor([0, 1, 2, 3, 0, 1, 2])))
    assert first.weight.grad is not None
    assert first.bias.grad is not None
    shown, sizes = bin_means(first.weight.grad.numpy(), first.bias.grad.numpy())
    assert shown.shape == (6, 3)
    np.testing.assert_allclose(shown[1:], x[2:], atol=1e-9)
    assert np.abs(x - shown[0]).max(axis=1).min() > 1e-6  # a mean of two
    np.testing.assert_allclose(sizes.sum(), first.bias.grad.numpy()[0], atol=1e-12)


def test_a_mean_outside_the_box_is_left_out() -> None:
    """Two rows with gradients of both signs have the mean 1.25; each alone is itself."""
    g, x = np.array([3.0, -1.0, 1.0, 1.0]), np.array([[0.9], [0.2], [0.9], [0.2]])
    by_row = np.column_stack([g[:, None] * x, g])
    by_bin = np.stack([by_row[0] + by_row[1], by_row[2], by_row[3]])
    by_unit = by_bin[::-1].cumsum(axis=0)[::-1]
    shown, sizes = bin_means(by_unit[:, :1], by_unit[:, 1])
    np.testing.assert_allclose(shown, [[0.9], [0.2]])
    np.testing.assert_allclose(sizes, [1, 1])
