"""Training with the active party as aggregator: embeddings come directly to it, gradients go directly back.

The coordinator starts it, draws the order of every epoch and receives the bit of early stopping; it receives
no embedding and no gradient.
"""

from collections.abc import Callable, Sequence
from threading import Event

import numpy as np

from vflens.clients.vertical.aligned_run import LabelledRun
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ProtocolError, UnavailableError
from vflens.protocol.acts import Epoch, Trained
from vflens.protocol.link import Link
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.embeddings import TrainingStreams
from vflens.types import Array, Exchange, Phase, Point, Released
from vflens.words import counted


class DirectTraining:
    """The loop that ``party`` runs over its links to the ``passive`` parties, in name order.

    ``take`` releases the gradient in one step's embeddings, and learns once it has left; ``paused``: the
    coordinator came back.

    A step is one round trip: the gradient of the step before travels with the rows, and while the passive
    parties compute, this party takes its own optimiser step. With staleness it computes the gradient of the
    step before as well, which travels one step later.
    """

    def __init__(
        self,
        party: VerticalParty[LabelledRun],
        coordinator: Link,
        passive: Sequence[Link],
        paused: Event,
        take: Callable[[Sequence[Released]], None],
    ) -> None:
        self._party, self._coordinator, self._passive = party, coordinator, passive
        self._paused, self._take = paused, take
        self._federation = party.run.federation
        self._staleness = self._federation.training.staleness

    async def run(self) -> Trained:
        """Train to the end, from the step after the last that was learned from.

        Raises:
            ProtocolError: a party's answer is wrong.
            UnavailableError: a party did not answer in time, or the run is over.
        """
        first = step = self._party.recovery.learned + 1
        number = first // self._federation.epoch_steps
        async with TrainingStreams.opened(self._federation, self._passive) as streams:
            while len(order := self._order(number, step)):
                for rows in self._batches(order)[step - number * self._federation.epoch_steps :]:
                    await self._step(streams, Exchange(self._federation.run, Phase.TRAIN, number, step), rows)
                    step += 1
                self._party.settle()
                number += 1
            await self._finish(streams, step)
        return Trained(first, step)

    async def _step(self, streams: TrainingStreams, exchange: Exchange, rows: Array) -> None:
        if self._party.stopped.is_set():
            raise UnavailableError(f"run {exchange.run!r} is over: no further step is taken")
        if self._paused.is_set():
            raise UnavailableError(f"the coordinator of run {exchange.run!r} came back: it asks anew")
        gradient = self._gradient(exchange.step - 1 - self._staleness)
        await streams.send(exchange, rows, gradient)
        self._party.settle()  # learns from the step before
        self._take(await streams.receive(exchange, rows, gradient))

    async def _finish(self, streams: TrainingStreams, steps: int) -> None:
        """Deliver the remaining gradients."""
        exchange = Exchange(self._federation.run, Phase.TRAIN, steps // self._federation.epoch_steps, steps)
        for step in range(steps - 1 - self._staleness, steps):
            await streams.deliver(exchange, self._gradient(step))

    def _gradient(self, step: int) -> Released | None:
        return self._party.gate.kept(Point.GRADIENT, step)

    def _order(self, number: int, step: int) -> Array:
        """The rows of epoch ``number``, none when training is over."""
        stop = self._party.run.stopping.stops_after(step - 1)
        return ordered(self._coordinator, self._federation, number, stop=stop)

    def _batches(self, order: Array) -> list[Array]:
        size = self._federation.training.batch_size
        return [order[i : i + size] for i in range(0, len(order), size)]


def ordered(coordinator: Link, federation: VerticalAgreement, number: int, *, stop: bool = False) -> Array:
    """The training rows in the order of epoch ``number``, none after the last or where early stopping says
    ``stop``.

    Raises:
        ProtocolError: the coordinator names others.
    """
    rows = coordinator.call(Epoch(federation.run, number, stop)).rows
    if len(rows):
        federation.checked_rows(rows, Phase.TRAIN)
        if not len(rows) == len(np.unique(rows)) == len(federation.train):
            raise ProtocolError(
                f"the order of epoch {number} holds {counted(len(rows), 'row')}: every training row, "
                "once, is due"
            )
    return rows
