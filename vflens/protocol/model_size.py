"""A model's memory, before it is built: a coordinator names its widths, the party has to hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vflens.models.settings import SplitNetwork
from vflens.protocol.federation import Federation
from vflens.types import ColumnInfo, PartyInfo, Role

#: Value, gradient and two moments of the optimiser, 8 bytes each at most.
PARAMETER_BYTES = 32
#: A layer's output and the gradient in it, 8 bytes each at most.
OUTPUT_BYTES = 16
#: Scaled columns, and the same after defences of inputs, in float64.
CELL_BYTES = 16


@dataclass(frozen=True)
class Size:
    """Parameters of a model, and at most so many numbers per row in the outputs of its layers."""

    parameters: int = 0
    outputs: int = 0

    def __add__(self, other: Size) -> Size:
        """Both models."""
        return Size(self.parameters + other.parameters, self.outputs + other.outputs)


def memory(federation: Federation, party: PartyInfo) -> int:
    """Bytes that ``party`` holds of the run in softmax regression or its part of the network, imports left
    out.

    Raises:
        ConfigError: the network does not fit the columns.
    """
    batch = min(federation.training.batch_size, len(federation.train))
    model = part_size(federation, party)
    labels = federation.n_classes if party.role is Role.ACTIVE else 0
    rows = federation.rows * (CELL_BYTES * len(party.columns) + 8 * labels)
    return rows + PARAMETER_BYTES * model.parameters + OUTPUT_BYTES * batch * model.outputs


def widest(federation: Federation) -> int:
    """The most numbers per row of any layer that the coordinator or a peer chose.

    Raises:
        ConfigError: the embeddings cannot be combined.
    """
    network = federation.network
    chosen = (network.width, *network.hidden, *network.top) if network else ()
    return max(federation.n_classes, federation.combined_width, *chosen)


def part_size(federation: Federation, party: PartyInfo) -> Size:
    """The part of the model that ``party`` learns."""
    network, classes = federation.network, federation.n_classes
    if network is None:
        return Size(classes * (len(party.columns) + 1), classes)
    own = bottom_size(network, party.columns) if party.columns else Size()
    if party.role is Role.PASSIVE:
        return own
    widths = [network.embedding_width(party.columns)] if party.columns else []
    combined = network.combined_width([federation.combined_width, *widths], classes)
    return own + top_size(network, combined, classes)


def bottom_size(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> Size:
    """A bottom model on ``columns``; the convolutions are those of
    :mod:`vflens.models.networks.architectures`.
    """
    d, width = len(columns), network.embedding_width(columns)
    if network.architecture == "cnn":
        return Size((9 + 1) * 8 + (8 * 9 + 1) * 16, 27 * d)
    if network.architecture == "lenet":
        return Size((25 + 1) * 6 + (6 * 25 + 1) * 16, 23 * d + width)
    return _fully_connected([d, *network.hidden, width])


def top_size(network: SplitNetwork, width: int, classes: int) -> Size:
    """The top model on an embedding of ``width`` numbers."""
    if not network.trainable_top:
        return Size(0, classes)
    return _fully_connected([width, *network.top, classes]) + Size(0, width)


def _fully_connected(widths: Sequence[int]) -> Size:
    """Linear layers, each with what is between it and the next: two more of its size at most."""
    return Size(sum((a + 1) * b for a, b in pairwise(widths)), 3 * sum(widths[1:]))
