"""What clients that collude without their server know: the parameters of every round, and their own updates.

ω_{t+1} − ω_t is the weighted sum of a round's updates, masked or not. Less their own it is the sum of the
updates of the others: of one other client its update.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from vflens.errors import KnowledgeError
from vflens.plugins.views.horizontal import Parameters
from vflens.plugins.views.reads import Log
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.types import Phase, Point, Released

_Updates = Mapping[str, Released]  # of one round, by client


class BroadcastLog:
    """What clients ``received``, with the updates of all clients that follow from it.

    Args:
        federation: the run.
        received: what one of them received, the parameters of each round.
        own: what they sent before masks, by name the updates of all rounds in order.

    Raises:
        KnowledgeError: clients are not told who trained in a round.
    """

    def __init__(
        self, federation: HorizontalAgreement, received: Log, own: Mapping[str, Sequence[Released]]
    ) -> None:
        self._federation, self._received, self._own = federation, received, own
        if federation.horizontal.has_gaps:
            raise KnowledgeError(
                "clients without their server do not know who trained in a round: attack a run of all "
                "clients in every round, or give the server's folder"
            )

    def parameters(self, number: int) -> Parameters:
        """ω_t by name, which every client received in round t = ``number``."""
        return self._rounds()[number].tensors or {}

    def select(
        self, *points: Point, phases: Collection[Phase] = frozenset(Phase), sender: str | None = None
    ) -> Iterator[Released]:
        """See :meth:`vflens.storage.journal.Reader.select`; UPDATE are those of all clients.

        Raises:
            KnowledgeError: there are several clients besides these.
        """
        yield from self._received.select(*points, phases=phases, sender=sender)
        if Point.UPDATE not in points or Phase.TRAIN not in phases:
            return
        for number, (before, after) in enumerate(pairwise(self._rounds())):
            updates = {name: sent[number] for name, sent in self._own.items()}
            other = self._other(before, after, updates)
            together = updates | {other.sender: other}
            yield from (together[name] for name in sorted(together) if sender in (None, name))

    def _rounds(self) -> list[Released]:
        return list(self._received.select(Point.PARAMETERS, phases={Phase.TRAIN}))

    def _other(self, before: Released, after: Released, own: _Updates) -> Released:
        """The update of the one client besides these, from the parameters ``before`` and ``after`` it."""
        names = [party.name for party in self._federation.parties]
        others = sorted(set(names) - set(own))
        if len(others) > 1:
            raise KnowledgeError(
                f"without their server {', '.join(sorted(own))} know the sum of the updates of "
                f"{', '.join(others)}, and no more: all other clients have to collude"
            )
        (other,), weights = others, self._federation.weights(names)
        found = {}
        for name, value in (after.tensors or {}).items():
            total = value.astype(np.float64) - before.tensor(name)
            for client, update in own.items():
                total -= weights[client] * update.tensor(name).astype(np.float64)
            found[name] = total / weights[other]
        return Released(other, before.exchange, Point.UPDATE, before.rows, tensors=found)
