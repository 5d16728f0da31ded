"""The layers of :mod:`vflens.models.layers` in torch."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from vflens.models import layers as described
from vflens.models.layers import Layer, Shape, inputs_of
from vflens.models.pixels import image_grid
from vflens.types import ColumnInfo

#: Mean and variance of each channel over one batch.
Moments: TypeAlias = tuple[Tensor, Tensor]


class AsImage(nn.Module):
    """Rows of pixels (n, d) as images (n, channels, height, width)."""

    index: Tensor

    def __init__(self, columns: Sequence[ColumnInfo]) -> None:
        super().__init__()
        self.register_buffer("index", torch.from_numpy(image_grid(columns)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The pixels at their places."""
        return x[:, self.index]


class BatchNormModule(nn.Module):
    """Each channel with mean 0 and variance 1 over the batch, in predictions by its running moments; then
    scaled and shifted.

    Unlike torch's, running moments follow a batch once it is *learned* from, not whenever it is computed: a
    batch may be computed again (after a restart, or one step stale), and is learned once. A batch with one
    number per channel has no variance: it is treated as in predictions.
    """

    eps = 1e-5
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.moments: Moments | None = None  # of the batch computed last in training

    def reset_parameters(self) -> None:
        """Forget all batches that it learned from."""
        with torch.no_grad():
            for ones, zeros in ((self.weight, self.bias), (self.running_var, self.running_mean)):
                ones.fill_(1.0), zeros.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """The answer to ``x`` (n, channels, height, width)."""
        alone = x[:, 0].numel() == 1
        if not self.training or alone:
            self.moments, used = None, (self.running_mean, self.running_var)
        else:  # with momentum 1 torch leaves the batch's own moments in them
            self.moments = used = torch.zeros_like(self.running_mean), torch.zeros_like(self.running_var)
        return functional.batch_norm(
            x, *used, self.weight, self.bias, training=self.moments is not None, momentum=1.0, eps=self.eps
        )

    def learn(self, moments: Moments | None) -> None:
        """Move the running moments a tenth of the way to those of a batch."""
        if moments is not None:
            self.running_mean.lerp_(moments[0], 0.1), self.running_var.lerp_(moments[1], 0.1)


def learn_moments(module: nn.Module) -> None:
    """Move the running moments of all batch norms of ``module`` towards those of the last batch."""
    for norm in module.modules():
        if isinstance(norm, BatchNormModule):
            norm.learn(norm.moments)


class ResidualModule(nn.Module):
    """``branch`` (x) + ``shortcut`` (x)."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.shortcut, self.branch = shortcut, branch  # in this order: the branch's convolution is the last

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        return cast(Tensor, self.branch(x) + self.shortcut(x))


class BesideModule(nn.Module):
    """``left`` and ``right`` side by side; see :class:`vflens.models.layers.Beside`."""

    def __init__(self, left: nn.Module, right: nn.Module, deep: int) -> None:
        super().__init__()
        self.left, self.right, self._deep = left, right, deep

    def forward(self, x: Tensor) -> Tensor:
        """Both outputs (n, left + right)."""
        left, right = (x[:, : -self._deep], x[:, -self._deep :]) if self._deep else (x, x)
        return torch.cat([self.left(left), self.right(right)], dim=1)


class CrossModule(nn.Module):
    """x_{l+1} = x_0·(w_l·x_l) + b_l + x_l for each row of weights w (layers, d)."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(layers, width))
        self.bias = nn.Parameter(torch.empty(layers, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Small uniform weights, no bias; torch's generator draws."""
        bound = self.weight.shape[1] ** -0.5
        nn.init.uniform_(self.weight, -bound, bound), nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x_L (n, d) of x_0 = ``x``."""
        crossed = x
        for weight, bias in zip(self.weight, self.bias, strict=True):
            crossed = x * (crossed @ weight).unsqueeze(1) + bias + crossed
        return crossed


class AveragePoolModule(nn.Module):
    """The mean of each channel (n, channels); torch's own has no gradient on a GPU that repeats its bits."""

    def forward(self, x: Tensor) -> Tensor:
        """Over height and width."""
        return x.mean(dim=(2, 3))


def built(layers: Sequence[Layer], given: Shape) -> list[nn.Module]:
    """New modules for ``layers`` of rows of shape ``given``; an image is flattened before a linear layer."""
    modules: list[nn.Module] = []
    for layer, shape in inputs_of(layers, given):
        if isinstance(layer, described.Linear) and len(shape) == 3:
            modules.append(nn.Flatten())
        modules.append(_MADE[type(layer)](layer, shape))
    return modules


def _convolution(layer: described.Convolution, given: Shape) -> nn.Module:
    shape = given[0], layer.outputs, layer.kernel, layer.stride, layer.padding
    return nn.Conv2d(*shape, bias=layer.bias)


def _residual(layer: described.Residual, given: Shape) -> nn.Module:
    shortcut, branch = (nn.Sequential(*built(side, given)) for side in (layer.shortcut, layer.branch))
    return ResidualModule(branch, shortcut)


def _beside(layer: described.Beside, given: Shape) -> nn.Module:
    sides = zip((layer.left, layer.right), layer.inputs(given), strict=True)
    left, right = (nn.Sequential(*built(side, read)) for side, read in sides)
    return BesideModule(left, right, layer.deep)


_MADE: Mapping[type[Layer], Callable[[Any, Shape], nn.Module]] = {
    described.Linear: lambda layer, given: nn.Linear(prod(given), layer.outputs),
    described.Convolution: _convolution,
    described.ReLU: lambda layer, given: nn.ReLU(),
    described.Dropout: lambda layer, given: nn.Dropout(layer.share),
    described.BatchNorm: lambda layer, given: BatchNormModule(given[0]),
    described.MaxPool: lambda layer, given: nn.MaxPool2d(2),
    described.AveragePool: lambda layer, given: AveragePoolModule(),
    described.Cross: lambda layer, given: CrossModule(layer.layers, given[0]),
    described.Residual: _residual,
    described.Beside: _beside,
}

#: What draws no random numbers.
NEVER_DRAW = (
    *(nn.ModuleDict, nn.Sequential, nn.Identity, nn.Linear, nn.Conv2d, nn.ReLU, nn.MaxPool2d),
    *(
        nn.Flatten,
        nn.Unflatten,
        AsImage,
        BatchNormModule,
        ResidualModule,
        BesideModule,
        CrossModule,
        AveragePoolModule,
    ),
)
