"""Who may ask whom in a vertical run.

In particular the active party cannot reach a passive party's forward pass and so avoid the coordinator's
score gate, unless all are configured so (:data:`DIRECT_ACCESS`).
"""

from dataclasses import dataclass
from typing import Protocol

from vflens.models.settings import Aggregator, Protection
from vflens.protocol.access import Access, pairs
from vflens.protocol.acts import (
    Begin,
    Deliver,
    Describe,
    Disclose,
    Epoch,
    Finished,
    Forward,
    Predict,
    Prepare,
    Query,
    Rejoin,
    Step,
    Stop,
    Submission,
    Train,
)
from vflens.protocol.mask_acts import Deal, Seed
from vflens.protocol.vertical.row_ids import Blind, Identify, Salt
from vflens.types import Role

_DATA = {Role.PASSIVE, Role.ACTIVE}
_TO_DATA = pairs({Role.COORDINATOR}, _DATA)
_NOBODY = pairs(set(), set())

#: The coordinator aggregates.
ACCESS: Access = {
    Describe: _TO_DATA,
    Salt: _TO_DATA,
    Identify: _TO_DATA,
    Blind: _TO_DATA,
    Prepare: _TO_DATA,
    Rejoin: _TO_DATA,
    Step: _TO_DATA,
    Train: _NOBODY,
    Epoch: _NOBODY,
    Seed: _NOBODY,
    Deal: _NOBODY,
    Disclose: _TO_DATA,
    Deliver: _TO_DATA,
    Begin: _TO_DATA,
    Forward: pairs({Role.COORDINATOR}, {Role.PASSIVE}),
    Stop: _TO_DATA,
    Predict: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Finished: pairs(_DATA, {Role.COORDINATOR}),
    Submission: frozenset({(Role.ACTIVE, Role.PASSIVE), (Role.PASSIVE, Role.ACTIVE)}),
    Query: pairs({Role.OPERATOR}, {Role.ACTIVE}),
}

#: The differences if the active party aggregates: only it asks for embeddings, in training and prediction.
DIRECT_ACCESS: Access = {
    **ACCESS,
    Step: pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Train: pairs({Role.COORDINATOR}, {Role.ACTIVE}),
    Epoch: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Forward: pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Predict: _NOBODY,
}

#: The differences in protected training: the active party leads it, and the coordinator deals masks.
SHARES_ACCESS: Access = {
    **ACCESS,
    Step: pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Train: pairs({Role.COORDINATOR}, {Role.ACTIVE}),
    Epoch: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Seed: _TO_DATA,
    Deal: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
}


#: The hooks of defences that act on a batch, or on what a step makes of it.
_OF_STEPS = frozenset(
    {"on_batch", "on_batch_labels", "wrap_model", "penalty", "on_embedding", "on_gradient", "on_received"}
)


@dataclass(frozen=True, eq=False)
class Way:
    """How messages of training go.

    ``access`` says who may ask whom. In a step are ``step_messages`` numbers of messages. ``led_by_active``:
    the active party leads, and no message of training reaches the coordinator. The hooks ``unused`` of
    defences never act, those of ``unused_at_passive`` not at a passive party.
    """

    access: Access
    step_messages: int
    led_by_active: bool
    unused: frozenset[str]
    unused_at_passive: frozenset[str] = frozenset()


#: The coordinator sums embeddings.
SUMMED = Way(ACCESS, 1, led_by_active=False, unused=frozenset())
#: Passive parties send embeddings to the active party, and nobody else receives any.
DIRECT = Way(DIRECT_ACCESS, 1, led_by_active=True, unused=frozenset({"on_embedding"}))
#: No batch, embedding or gradient is anybody's.
ON_SHARES = Way(SHARES_ACCESS, 2, led_by_active=True, unused=_OF_STEPS, unused_at_passive=_OF_STEPS)


class Protected(Protocol):
    """What names a protection: settings of training, or a party's configuration."""

    @property
    def protection(self) -> Protection:
        """How training is protected."""


def way_of(aggregator: Aggregator | str, chosen: Protected) -> Way:
    """The way of a training that ``chosen`` protects, with this ``aggregator``."""
    if chosen.protection == "shares":
        return ON_SHARES
    return DIRECT if aggregator == "active" else SUMMED
