"""The two halves of a split network in torch: a bottom model, and the top model."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from vflens.models.blocks import bottom_layers, top_layers
from vflens.models.families.split_network import SplitNetwork
from vflens.models.layers import shape_of
from vflens.models.networks.layers import AsImage, built
from vflens.types import ColumnInfo

DTYPES: Mapping[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


def bottom(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> nn.Module:
    """A new bottom model for a party with ``columns``: (n, d) → (n, width); its start depends on torch's
    generator.

    Raises:
        ConfigError: the architecture does not fit the columns.
    """
    network.embedding_width(columns)
    given, layers = network.input_shape(columns), bottom_layers(network)
    modules = built(layers, given)
    if len(given) == 3:
        modules.insert(0, AsImage(columns))
    if len(shape_of(layers, given)) == 3:
        modules.append(nn.Flatten())
    return nn.Sequential(*modules).to(DTYPES[network.precision])


def top(
    network: SplitNetwork, width: int, classes: int, parties: Sequence[Sequence[ColumnInfo]] = ()
) -> nn.Module:
    """A new top model: the combined embedding (n, width) → logits (n, classes).

    ``parties`` are the columns of those whose embeddings are combined; a top model that begins with linear
    layers does not ask for them.

    Raises:
        ConfigError: it begins with a convolution, and the parties' images differ.
    """
    if not network.trainable_top:
        return nn.Identity()
    given = network.top_shape(width, parties)
    modules = built(top_layers(network, classes), given)
    if len(given) == 3:
        modules.insert(0, nn.Unflatten(1, given))
    return nn.Sequential(*modules).to(DTYPES[network.precision])
