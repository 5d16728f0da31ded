"""Deep leakage from the gradients of LeNet, many images side by side, beside one image after another.

The loop is that of published implementations: torch's own L-BFGS, with a strong Wolfe line search, on one
image. It inverts a few images; the rest is extrapolated. Two networks: VFLens's LeNet with ReLU and maxima,
and the one of Zhu et al. (2019), with sigmoids and strides, for which deep leakage was published.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.gradients.inverted import BatchShape, deep_leakage
from vflens.attacks.helpers.gradients.matching import Matching
from vflens.datasets.mnist import Mnist
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.types import Array, ColumnInfo

IMAGES, LOOPED, STEPS = 32, 4, 200
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, 28)) for i in range(28 * 28))
NEAR = 1e-3  # mean squared error of an image that counts as found


def _images() -> Array:
    """MNIST's where the folder of whole data sets is present, else noise: the time is the same."""
    if "VFLENS_DATA" in os.environ:
        return np.asarray(Mnist().load().features[:IMAGES], np.float64) / 255
    return np.random.default_rng(0).random((IMAGES, len(COLUMNS)))


def _lenet() -> nn.Module:
    network = SplitNetwork(architecture="lenet", top=(120, 84), precision="float64")
    return nn.Sequential(bottom(network, COLUMNS), top(network, network.embedding_width(COLUMNS), 10))


def _published() -> nn.Module:
    layers: list[nn.Module] = [nn.Unflatten(1, (1, 28, 28))]
    for given, stride in ((1, 2), (12, 2), (12, 1)):
        layers += [nn.Conv2d(given, 12, 5, padding=2, stride=stride), nn.Sigmoid()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(588, 10)).to(torch.float64)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    return model


def _gradient(model: nn.Module, x: Tensor, y: Tensor, *, kept: bool = False) -> Sequence[Tensor]:
    return torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()), create_graph=kept)


def _looped(model: nn.Module, observed: Sequence[Tensor], y: Tensor, start: Tensor) -> Tensor:
    """One image as published implementations invert it."""
    x = start.clone().requires_grad_()
    size = sum((o**2).sum() for o in observed)
    optimizer = torch.optim.LBFGS(
        [x],
        max_iter=STEPS,
        history_size=20,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        guessed = _gradient(model, x, y, kept=True)
        pairs = zip(guessed, observed, strict=True)
        loss: Tensor = sum((((g - o) ** 2).sum() for g, o in pairs), start=x.new_zeros(())) / size
        x.grad = torch.autograd.grad(loss, x)[0]
        return loss.detach()

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return x.detach()


@pytest.mark.benchmark(group="gradient inversions")
@pytest.mark.parametrize("network", [_lenet, _published])
def test_images_side_by_side_beside_a_loop_over_them(
    network: Callable[[], nn.Module], benchmark: Any
) -> None:
    torch.manual_seed(0)
    model, images = network(), _images()[:, None]
    labels = np.random.default_rng(1).integers(0, 10, (IMAGES, 1))
    x, y = torch.tensor(images), torch.tensor(labels)
    each = [_gradient(model, rows, label) for rows, label in zip(x, y, strict=True)]
    names = [name for name, _ in model.named_parameters()]
    observed = {n: torch.stack(part).numpy() for n, part in zip(names, zip(*each, strict=True), strict=True)}
    matching, shape = Matching(model, observed), BatchShape(1, COLUMNS, 10)
    starts = np.random.default_rng(2).random((IMAGES, 1, len(COLUMNS)))

    began = process_time()
    rng = np.random.default_rng(2)  # the loop's starts
    found = benchmark.pedantic(
        lambda: deep_leakage(matching, shape, rng, labels=labels, steps=STEPS), rounds=1
    )
    together = process_time() - began
    began = process_time()
    ends = [_looped(model, each[i], y[i], torch.tensor(starts[i])) for i in range(LOOPED)]
    alone = (process_time() - began) / LOOPED * IMAGES

    errors = ((found.x - images) ** 2).mean(axis=(1, 2))
    looped = [float(((end - x[i]) ** 2).mean()) for i, end in enumerate(ends)]
    figures = {
        "side by side, images a minute": 60 * IMAGES / together,
        "one by one, images a minute": 60 * IMAGES / alone,
        "ratio": alone / together,
        f"share found (error below {NEAR:g})": float((errors < NEAR).mean()),
        "median error of those in the loop, side by side": float(np.median(errors[:LOOPED])),
        "median error of those in the loop, one by one": float(np.median(looped)),
    }
    print(f"\nDeep leakage under {network.__name__[1:]}, {IMAGES} images, {STEPS} steps, one core")
    for what, figure in figures.items():
        print(f"  {what}: {figure:,.3g}")
    benchmark.extra_info.update(figures)
    assert alone > together
