"""What a server and clients that collude with it know together of masked updates.

They take their own updates, whose masks they know, from the sum of a round. Left is the sum of the updates of
the other clients: of one client alone it is its update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.fixed_point import decoded
from vflens.plugins.views.reads import Log
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.horizontal.masked_update import (
    FRACTION_BITS,
    as_tensors,
    given_of,
    keys_of,
    numbers,
)
from vflens.types import Phase, Point, Released

if TYPE_CHECKING:
    from vflens.protocol.horizontal.secure_sum import Masking


class UnmaskedLog:
    """The server's ``log``, in which the update of a client that is left alone in a round is uncovered.

    Args:
        federation: the run.
        log: what the server received.
        received: what a client that colludes received, the parameters of each round.
        maskings: client that colludes → its masks.
    """

    def __init__(
        self, federation: HorizontalAgreement, log: Log, received: Log, maskings: Mapping[str, Masking]
    ) -> None:
        self._federation, self._log, self._received = federation, log, received
        self._maskings = maskings

    def select(
        self, *points: Point, phases: Collection[Phase] = frozenset(Phase), sender: str | None = None
    ) -> Iterator[Released]:
        """See :meth:`vflens.storage.journal.Reader.select`; UPDATE are those that are uncovered.

        Raises:
            KnowledgeError: no round has ``sender`` without another client that does not collude.
        """
        yield from self._log.select(*points, phases=phases, sender=sender)
        if Point.UPDATE in points and Phase.TRAIN in phases:
            yield from self._uncovered(sender)

    def _uncovered(self, sender: str | None) -> Iterator[Released]:
        masked = self._log.select(Point.MASKED_UPDATE, phases={Phase.TRAIN})
        beside, found = set[str](), False
        for number, updates in groupby(masked, key=lambda r: r.exchange.round):
            sent = {r.sender: r for r in updates}
            others = sorted(sent.keys() - self._maskings.keys())
            if len(others) == 1 and sender in (None, *others):
                found = True
                yield self._update(sent[others[0]], sent, self._parameters(number))
            elif sender in others:
                beside |= set(others) - {sender}
        if beside and not found:
            raise KnowledgeError(
                f"with these colluders the server knows the sum of the updates of {sender!r} and of "
                f"{', '.join(sorted(beside))}, and no more: all others of a round have to collude"
            )

    def _parameters(self, number: int) -> Released:
        """What every client received in round ``number``."""
        sent = self._received.select(Point.PARAMETERS, phases={Phase.TRAIN})
        found = next((r for r in sent if r.exchange.round == number), None)
        if found is None:
            raise KnowledgeError(
                f"the transcript of a colluder lacks the parameters of round {number}, on which masks rest: "
                "run with transcript.every = 1"
            )
        return found

    def _update(self, of: Released, sent: Mapping[str, Released], parameters: Released) -> Released:
        """The update of the sender of ``of``, from the sum of what all ``sent`` in its round."""
        names, given = sorted(sent), given_of(self._federation, parameters)
        keys = keys_of(self._federation, names)
        total = np.stack([numbers(r) for r in sent.values()]).sum(axis=0)
        for client in names:
            if client in self._maskings:
                own, nothing = numbers(sent[client]), np.zeros_like(total)
                masks = self._maskings[client].masked(nothing, keys, of.exchange.round, given)
                total = total - (own - masks)
        share = self._federation.weights(names)[of.sender]
        tensors = as_tensors(decoded(total, FRACTION_BITS) / share, parameters.tensors or {})
        return Released(of.sender, of.exchange, Point.UPDATE, of.rows, tensors=tensors)
