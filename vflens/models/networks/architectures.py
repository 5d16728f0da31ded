"""The registered architectures: a bottom model by name, and the top model that all of them share.

LeNet is cut as FedAdOb cuts it (2 convolutions | fully connected layers), without batch normalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from vflens.models.families.split_network import SplitNetwork
from vflens.models.pixels import image_grid
from vflens.types import ColumnInfo

DTYPES: Mapping[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


class AsImage(nn.Module):
    """Rows of pixels (n, d) as images (n, 1, height, width)."""

    index: Tensor

    def __init__(self, columns: Sequence[ColumnInfo]) -> None:
        super().__init__()
        self.register_buffer("index", torch.from_numpy(image_grid(columns)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The pixels at their places."""
        return x[:, self.index].unsqueeze(1)


def bottom(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> nn.Module:
    """A new bottom model for a party with ``columns``: (n, d) → (n, width); its start depends on torch's
    generator.

    Raises:
        ConfigError: the architecture does not fit the columns.
    """
    network.embedding_width(columns)
    module = BOTTOMS[network.architecture](network, columns)
    return module.to(DTYPES[network.precision])


def top(network: SplitNetwork, width: int, classes: int) -> nn.Module:
    """A new top model: the combined embedding (n, width) → logits (n, classes)."""
    if not network.trainable_top:
        return nn.Identity()
    module = _fully_connected([width, *network.top, classes])
    if network.architecture == "mlp":  # its embedding is linear: two linear layers in a row would be one
        module.insert(0, nn.ReLU())
    return module.to(DTYPES[network.precision])


def _fully_connected(widths: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        if layers:
            layers.append(nn.ReLU())
            if dropout:
                layers.append(nn.Dropout(dropout))
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


def _mlp(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> nn.Module:
    return _fully_connected([len(columns), *network.hidden, network.width], network.dropout)


def _cnn(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> nn.Module:
    return nn.Sequential(
        AsImage(columns),
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten()),
    )


def _lenet(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> nn.Module:
    return nn.Sequential(
        AsImage(columns),
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
    )


BOTTOMS: Mapping[str, Callable[[SplitNetwork, Sequence[ColumnInfo]], nn.Module]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "lenet": _lenet,
}
