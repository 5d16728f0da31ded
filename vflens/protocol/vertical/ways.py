"""The three ways in which a vertical federation trains, and what else of a run depends on the way."""

from dataclasses import dataclass
from typing import Protocol

from vflens.models.settings import Aggregator, Protection
from vflens.protocol.access import Access
from vflens.protocol.vertical.access import ACCESS, DIRECT_ACCESS, SHARES_ACCESS

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
