"""FedAdOb's Theorem 1 in its own setting, against an adversary that knows the moments of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inversionview import recorded_view

from vflens.attacks.moments_only import MomentsOnly
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo, Point

D = BATCH = 64
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(D))
NETWORK = SplitNetwork(architecture="mlp", width=2 * D, precision="float64")
NOTHING = np.zeros(0, np.int32)


def _view(h: Array, weight: Array, **moments: Array) -> AdversaryView:
    """A view whose target disclosed the linear bottom ``weight``, and granted ``moments``."""
    rows = np.arange(len(h), dtype=np.int32)
    parameters = {"0.weight": weight, "0.bias": np.zeros(len(weight))}
    disclosed: Any = {Point.PARAMETERS: (NOTHING, parameters), Point.MOMENTS: (NOTHING, moments)}
    return recorded_view(NETWORK, COLUMNS, rows, predicted=[(rows, h)], disclosed=disclosed)


def _error(x: Array, view: AdversaryView, **settings: Any) -> float:
    found = MomentsOnly(**settings).reconstruct(view, rng=np.random.default_rng(0))
    return float(((found.values - x) ** 2).mean())


@pytest.mark.parametrize("largest", [1.0, 10.0, 100.0])
def test_theorem_1_counts_guesses_and_one_who_knows_the_mean_does_not_guess(largest: float) -> None:
    """H = W(x + s): a key s^β alone, one mean per entry, no autoencoder, no pooling.

    A guess of s errs by its variance N²/12 + σ² at least, and so does x then; ½ errs by .083. With E[x] what
    is left is the error of the batch's mean, var(x)/64, whatever N is.
    """
    rng = np.random.default_rng(3)
    weight, key = rng.normal(size=(2 * D, D)), rng.normal(rng.uniform(-largest, 0, D), 1.0)
    x = rng.random((BATCH, D))
    view = _view((x + key) @ weight.T, weight, mean=np.full(D, 0.5), covariance=np.eye(D) / 12)
    error = _error(x, view, shift_only=True, box=False)
    assert 0.0009 < error < 0.0015
    assert error == pytest.approx(((x.mean(axis=0) - 0.5) ** 2).mean(), rel=1e-6)
    assert _error(x, view, shift_only=True) <= error
    assert ((x - 0.5) ** 2).mean() > 0.08


def test_with_a_scale_too_the_error_stays_far_below_that_of_the_prior() -> None:
    """Its sign is not given: the inputs are skewed, and only one sign leaves their estimates in the box."""
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(2 * D, D))
    x = rng.beta(1, 4, (BATCH, D))
    scale, shift = rng.normal(size=2 * D), rng.normal(0, 10, 2 * D)
    covariance = np.eye(D) * 4 / 150
    view = _view(x @ weight.T * scale + shift, weight, mean=np.full(D, 0.2), covariance=covariance)
    assert ((x - 0.2) ** 2).mean() > 0.024
    assert _error(x, view) < 0.004
    assert _error(x, view, shift_only=True) > 0.024  # γ = 1 is not so


def test_many_rows_leave_no_error() -> None:
    """The moments of 20,000 rows are those granted: γ and β are found, and x with them."""
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(2 * D, D))
    x = rng.beta(1, 4, (20_000, D))
    view = _view(x @ weight.T * -3 + 5, weight, mean=x.mean(axis=0), covariance=np.cov(x.T))
    assert _error(x, view) < 1e-5


def test_a_mean_without_a_covariance_is_not_enough() -> None:
    view = _view(np.zeros((3, 2 * D)), np.ones((2 * D, D)), mean=np.full(D, 0.5))
    with pytest.raises(KnowledgeError, match="'target' granted a mean without a covariance"):
        _error(np.zeros((3, D)), view)
