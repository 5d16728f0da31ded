"""The architectures as lists of blocks. A cut lies between two of them: bottom models | top model.

The last layer, fully connected to the classes, is no block: it always belongs to the top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from vflens.models.layers import (
    AveragePool,
    BatchNorm,
    Beside,
    Convolution,
    Cross,
    Dropout,
    Layer,
    Linear,
    MaxPool,
    ReLU,
    Residual,
)

if TYPE_CHECKING:
    from vflens.models.families.split_network import SplitNetwork

Block: TypeAlias = tuple[Layer, ...]


def feature_blocks(network: SplitNetwork) -> Sequence[Block]:
    """Those before the layers that ``top`` names: the bottom of FedAdOb's vertical cut."""
    return _FEATURES[network.architecture](network)


def blocks(network: SplitNetwork) -> list[Block]:
    """All blocks of ``network``."""
    if network.architecture == "mlp":
        return [*feature_blocks(network), *((ReLU(), Linear(width)) for width in network.top)]
    return [*feature_blocks(network), *((Linear(width), ReLU()) for width in network.top)]


def bottom_layers(network: SplitNetwork) -> list[Layer]:
    """The layers of a bottom model, with the batch norm that ``batch_norm`` asks for."""
    layers = [layer for block in blocks(network)[: network.bottom_blocks] for layer in block]
    if network.batch_norm:
        last = max(i for i, layer in enumerate(layers) if isinstance(layer, Convolution))
        layers.insert(last + 1, BatchNorm())
    return layers


def top_layers(network: SplitNetwork, classes: int) -> list[Layer]:
    """The layers of the top model, to ``classes`` logits; none where it is not trainable."""
    if not network.trainable_top:
        return []
    layers = [layer for block in blocks(network)[network.bottom_blocks :] for layer in block]
    if network.architecture == "mlp":  # its embedding is linear: two linear layers in a row would be one
        layers.append(ReLU())
    return [*layers, Linear(classes)]


def _mlp(network: SplitNetwork) -> list[Block]:
    """Each layer behind the activation of the one before: an embedding is linear."""
    first, *others = (*network.hidden, network.width)
    drop = (Dropout(network.dropout),) if network.dropout else ()
    return [(Linear(first),), *((ReLU(), *drop, Linear(width)) for width in others)]


def _cnn(network: SplitNetwork) -> list[Block]:
    return [
        (Convolution(8, 3, padding=1), ReLU(), MaxPool()),
        (Convolution(16, 3, padding=1), ReLU()),
    ]


def _lenet(network: SplitNetwork) -> list[Block]:
    """LeCun et al., 1998, with ReLU and maxima."""
    return [
        (Convolution(6, 5, padding=2), ReLU(), MaxPool()),
        (Convolution(16, 5), ReLU(), MaxPool()),
    ]


def _alexnet(network: SplitNetwork) -> list[Block]:
    """Krizhevsky et al., 2012, as is usual for images of 32 by 32: smaller kernels, one linear layer."""
    return [
        (Convolution(64, 5, padding=2), ReLU(), MaxPool()),
        (Convolution(192, 5, padding=2), ReLU(), MaxPool()),
        (Convolution(384, 3, padding=1), ReLU()),
        (Convolution(256, 3, padding=1), ReLU()),
        (Convolution(256, 3, padding=1), ReLU(), MaxPool()),
    ]


def _resnet18(network: SplitNetwork) -> list[Block]:
    """He et al., 2016, as is usual for images of 32 by 32: first a convolution of 3 by 3 without pooling."""
    found: list[Block] = [(_plain_convolution(64, 3), BatchNorm(), ReLU())]
    before = 64
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        found += [_residual(before, channels, stride), _residual(channels, channels, 1)]
        before = channels
    found[-1] += (AveragePool(),)
    return found


def _residual(before: int, channels: int, stride: int) -> Block:
    """Two convolutions beside a shortcut, which has one of its own where the shape changes."""
    branch = (
        *(_plain_convolution(channels, 3, stride), BatchNorm(), ReLU()),
        *(_plain_convolution(channels, 3), BatchNorm()),
    )
    changed = (before, stride) != (channels, 1)
    shortcut = (_plain_convolution(channels, 1, stride), BatchNorm()) if changed else ()
    return (Residual(branch, shortcut), ReLU())


def _plain_convolution(channels: int, kernel: int, stride: int = 1) -> Convolution:
    """Without a bias: a batch norm is behind it."""
    return Convolution(channels, kernel, padding=kernel // 2, stride=stride, bias=False)


def _dcn(network: SplitNetwork) -> list[Block]:
    """Wang et al., 2017: as many cross layers as fully connected ones, beside them; the top reads both.

    The cross layers are in the first block: they need the inputs, which later blocks do not receive.
    """
    widths = (*network.hidden, network.width)
    first = Beside((Cross(len(widths)),), (Linear(widths[0]), ReLU()))
    others = (Beside((), (Linear(width), ReLU()), deep=before) for before, width in pairwise(widths))
    return [(first,), *((layer,) for layer in others)]


_FEATURES: Mapping[str, Callable[[SplitNetwork], Sequence[Block]]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "lenet": _lenet,
    "alexnet": _alexnet,
    "resnet18": _resnet18,
    "dcn": _dcn,
}
