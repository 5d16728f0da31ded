"""A model's memory, before it is built: a leader names its widths, the party has to hold it."""

from vflens.protocol.agreement import Agreement, naming
from vflens.protocol.roles import ROLES
from vflens.types import PartyInfo, Phase

#: Value, gradient and two moments of the optimiser, 8 bytes each at most.
PARAMETER_BYTES = 32
#: A layer's output and the gradient in it, 8 bytes each at most.
OUTPUT_BYTES = 16
#: Scaled columns, and the same after defences of inputs, in float64.
CELL_BYTES = 16


def memory(federation: Agreement, party: PartyInfo) -> int:
    """Bytes that ``party`` holds of the run in its part of the model, imports left out.

    Raises:
        ConfigError: the model does not fit the columns; it names the party.
    """
    train, predict = (len(federation.rows_of(party.name, use)) for use in (Phase.TRAIN, Phase.PREDICT))
    batch = min(federation.training.batch_size, train)
    with naming(party):
        model = federation.part_size(party)
    labels = federation.n_classes if ROLES[party.role].labelled else 0
    rows = (train + predict) * (CELL_BYTES * len(party.columns) + 8 * labels)
    return rows + PARAMETER_BYTES * model.parameters + OUTPUT_BYTES * batch * model.outputs


def widest(federation: Agreement) -> int:
    """The most numbers per row of any layer that the leader or a peer chose.

    Raises:
        ConfigError: the embeddings cannot be combined.
    """
    return max(federation.n_classes, federation.received_width, *federation.model.layer_widths)
