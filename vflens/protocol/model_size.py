"""A model's memory, before it is built: a coordinator names its widths, the party has to hold it."""

from __future__ import annotations

from vflens.protocol.federation import Federation, naming
from vflens.types import PartyInfo, Role

#: Value, gradient and two moments of the optimiser, 8 bytes each at most.
PARAMETER_BYTES = 32
#: A layer's output and the gradient in it, 8 bytes each at most.
OUTPUT_BYTES = 16
#: Scaled columns, and the same after defences of inputs, in float64.
CELL_BYTES = 16


def memory(federation: Federation, party: PartyInfo) -> int:
    """Bytes that ``party`` holds of the run in its part of the model, imports left out.

    Raises:
        ConfigError: the model does not fit the columns; it names the party.
    """
    batch = min(federation.training.batch_size, len(federation.train))
    peers = [p.columns for p in federation.passive]
    with naming(party):
        model = federation.model.part_size(party.role, party.columns, peers, federation.n_classes)
    labels = federation.n_classes if party.role is Role.ACTIVE else 0
    rows = federation.rows * (CELL_BYTES * len(party.columns) + 8 * labels)
    return rows + PARAMETER_BYTES * model.parameters + OUTPUT_BYTES * batch * model.outputs


def widest(federation: Federation) -> int:
    """The most numbers per row of any layer that the coordinator or a peer chose.

    Raises:
        ConfigError: the embeddings cannot be combined.
    """
    return max(federation.n_classes, federation.combined_width, *federation.model.layer_widths)
