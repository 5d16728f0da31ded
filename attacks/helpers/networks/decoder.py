"""A decoder's layers by the kind of the bottom model: transposed convolutions, or linear layers."""

from collections.abc import Sequence
from math import ceil, prod, sqrt

import torch
from torch import Tensor, nn

from vflens.attacks.helpers.networks.inversion import device_of
from vflens.errors import ConfigError
from vflens.models.networks.layers import AsImage
from vflens.types import ColumnInfo


def decoder(model: nn.Module, columns: Sequence[ColumnInfo], hidden: int) -> nn.Module:
    """A network from embeddings (n, w) of ``model`` to ``columns`` (n, d) in float64, whose answer is 0 at
    first.

    Where the embedding is a feature map of an image, two transposed convolutions with ``hidden`` channels
    between them bring it to the image's size; else two linear layers with 8·``hidden`` units between them.
    """
    places, shape, width = _places(columns), *_feature_map(model, len(columns))
    if places is None or shape is None:
        inner = 8 * hidden
        layers = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, len(columns)))
        return _silent(layers, layers[-1])
    last = nn.Conv2d(hidden, places.shape[0], 3, padding=1)
    first, second = zip(
        *(_factors(a, b) for a, b in zip(shape[1:], places.shape[1:], strict=True)), strict=True
    )
    layers = nn.Sequential(
        nn.Unflatten(1, shape),
        *(nn.ConvTranspose2d(shape[0], hidden, first, stride=first), nn.ReLU()),
        *(nn.ConvTranspose2d(hidden, hidden, second, stride=second), nn.ReLU()),
        *(last, _AsColumns(places)),
    )
    return _silent(layers, last)


class _AsColumns(nn.Module):
    """Images (n, colours, ≥ height, ≥ width) as rows (n, d): the inverse of ``AsImage``."""

    order: Tensor

    def __init__(self, places: Tensor) -> None:
        super().__init__()
        self.register_buffer("order", places.flatten().argsort(), persistent=False)
        self._height, self._width = places.shape[1:]

    def forward(self, images: Tensor) -> Tensor:
        """The columns in their order; what goes beyond the image is cut off."""
        return images[:, :, : self._height, : self._width].flatten(1)[:, self.order]


def _silent(layers: nn.Module, last: nn.Module) -> nn.Module:
    """``layers`` with 0 for the parameters of the ``last`` one, in float64."""
    for parameter in last.parameters():
        nn.init.zeros_(parameter)
    return layers.to(torch.float64)


def _factors(small: int, large: int) -> tuple[int, int]:
    """Two whole numbers, near each other, by which ``small`` becomes ``large`` or more."""
    first = ceil(sqrt(large / small))
    return first, ceil(large / (small * first))


def _places(columns: Sequence[ColumnInfo]) -> Tensor | None:
    """Which column each number of an image is (colours, height, width); None if they are no image."""
    try:
        image = AsImage(columns)
    except ConfigError:
        return None
    places: Tensor = image(torch.arange(len(columns))[None])[0]
    return places


def _feature_map(model: nn.Module, d: int) -> tuple[tuple[int, ...] | None, int]:
    """The shape (channels, height, width) of the last feature map of ``model``, None if the embedding is no
    such map; and the embedding's width.
    """
    shapes: list[tuple[int, ...]] = []
    hooks = [
        m.register_forward_hook(lambda _m, _i, out: shapes.append(tuple(out.shape[1:])))
        for m in model.modules()
    ]
    with torch.no_grad():
        width = model.eval()(torch.zeros((1, d), dtype=torch.float64, device=device_of(model))).shape[1]
    for hook in hooks:
        hook.remove()
    maps = [s for s in shapes if len(s) == 3 and prod(s) == width]
    return (maps[-1] if maps else None), width
