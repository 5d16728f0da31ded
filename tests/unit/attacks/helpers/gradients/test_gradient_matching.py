"""Gradients of guessed batches side by side, against torch's autograd one by one and finite differences."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from gradientcases import gradients_of
from thinned import first
from torch import Tensor, nn

from vflens.attacks.helpers.gradients.batch_norms import Moments, without_state
from vflens.attacks.helpers.gradients.matching import Matching
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.layers import BatchNormModule
from vflens.types import Array, ColumnInfo

SIDE, CLASSES = 6, 3
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, SIDE)) for i in range(SIDE**2))


def _cnn() -> nn.Module:
    """A whole network of VFLens with a batch norm whose running moments are not those of any batch here."""
    network = SplitNetwork(architecture="cnn", batch_norm=True, top=(4,), precision="float64")
    torch.manual_seed(1)
    model = nn.Sequential(bottom(network, COLUMNS), top(network, network.embedding_width(COLUMNS), CLASSES))
    for norm in (m for m in model.modules() if isinstance(m, BatchNormModule)):
        norm.running_mean.uniform_(), norm.running_var.uniform_(1, 2), nn.init.uniform_(norm.weight)
    return model


def _smooth(classes: int = CLASSES) -> nn.Module:
    torch.manual_seed(2)
    layers = nn.Unflatten(1, (1, SIDE, SIDE)), nn.Conv2d(1, 2, 3), nn.Tanh(), BatchNormModule(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(2 * (SIDE - 2) ** 2, classes)).to(torch.float64)


def _batches(m: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    return rng.random((m, n, SIDE**2)), rng.dirichlet(np.ones(CLASSES), (m, n))


@pytest.mark.parametrize("moments", ["batch", "running"])
def test_gradients_side_by_side_are_those_of_one_batch_after_another(moments: Moments) -> None:
    """With a batch norm in training, whose moments are the batch's, and as in predictions."""
    x, y = _batches(3, 4)
    one = gradients_of(_cnn().train(moments == "batch"), x, y)
    matching = Matching(_cnn(), one, moments=moments)
    guessed = matching.gradients(torch.tensor(x), torch.tensor(y))
    assert set(guessed) == set(one)
    for name, gradient in one.items():
        np.testing.assert_allclose(guessed[name], gradient, rtol=0, atol=1e-12)
    which = torch.arange(3)
    assert float(matching.distances(torch.tensor(x), torch.tensor(y), which).max()) < 1e-20
    other: Moments = "running" if moments == "batch" else "batch"
    wrong = Matching(_cnn(), one, moments=other).distances(torch.tensor(x), torch.tensor(y), which)
    assert float(wrong.min()) > 1e-3  # who supposes the other moments does not fit


def test_a_batch_norm_on_one_number_a_channel_has_no_moments_of_its_own() -> None:
    model = nn.Sequential(nn.Unflatten(1, (SIDE**2, 1, 1)), BatchNormModule(SIDE**2), nn.Flatten()).to(
        torch.float64
    )
    x = torch.tensor(_batches(1, 1)[0][0])
    torch.testing.assert_close(without_state(model, "batch")(x), model.train()(x))


@pytest.mark.parametrize("distance", first(["cosine", "squares"]))
def test_the_slope_of_the_distance_is_that_of_finite_differences(
    distance: Literal["squares", "cosine"],
) -> None:
    """The gradient of a gradient's distance, through a batch norm of the batch's moments."""
    x, y = _batches(2, 2)
    matching = Matching(_smooth(), gradients_of(_smooth(), *_batches(2, 2)), distance)
    away = torch.tensor(np.random.default_rng(4).random(x.shape), requires_grad=True)
    logits = torch.tensor(np.random.default_rng(5).normal(size=y.shape), requires_grad=True)

    def distances(rows: Tensor, z: Tensor) -> Tensor:
        return matching.distances(rows, torch.softmax(z, dim=2), torch.arange(2))

    assert torch.autograd.gradcheck(distances, (away, logits), eps=1e-6, atol=1e-7, rtol=1e-5)


def test_distances_are_those_of_their_definitions() -> None:
    model, (x, y) = _smooth(), _batches(2, 3)
    one, other = (gradients_of(model, batch, y) for batch in (x, x[:, ::-1] ** 2))
    o, g = (
        np.concatenate([part.reshape(2, -1) for part in found.values()], axis=1) for found in (one, other)
    )
    rows, labels, swapped = torch.tensor(x[:, ::-1] ** 2), torch.tensor(y), torch.tensor([1, 0])
    squares = ((g - o[::-1]) ** 2).sum(axis=1) / (o[::-1] ** 2).sum(axis=1)
    cosines = 1 - (g * o[::-1]).sum(axis=1) / np.linalg.norm(g, axis=1) / np.linalg.norm(o[::-1], axis=1)
    np.testing.assert_allclose(Matching(model, one).distances(rows, labels, swapped), squares, rtol=1e-9)
    found = Matching(model, one, "cosine").distances(rows, labels, swapped)
    np.testing.assert_allclose(found, cosines, rtol=1e-9)


def test_a_private_bottom_model_is_left_out() -> None:
    x, y = _batches(2, 2)
    one = gradients_of(_cnn(), x, y)
    tops = {name: g for name, g in one.items() if name.startswith("1.")}
    matching = Matching(_cnn(), tops)
    assert set(matching.gradients(torch.tensor(x), torch.tensor(y))) == set(tops)
    assert float(matching.distances(torch.tensor(x), torch.tensor(y), torch.arange(2)).max()) < 1e-20


def test_gradients_of_another_architecture_are_refused() -> None:
    with pytest.raises(KnowledgeError, match="give the architecture of the model that was trained"):
        Matching(_smooth(), {"1.weight": np.zeros((1, 2, 1, 5, 5))})
    with pytest.raises(KnowledgeError, match="gradient 'nothing' of shape"):
        Matching(_smooth(), {"nothing": np.zeros((1, 2))})
