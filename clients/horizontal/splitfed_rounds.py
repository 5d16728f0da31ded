"""SplitFed at a client: its bottom model learns batch by batch with a top model at the server.

Thapa et al., 2022, algorithm 1. Within a round the client keeps its answers in memory: a server that begins
the round anew gets the same ones. A client that was restarted computes them again, from the same draws.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vflens.clients.horizontal.local_rounds import LocalRounds
from vflens.clients.horizontal.local_run import local_batches
from vflens.clients.horizontal.prepared_client import PreparedClient
from vflens.errors import ProtocolError, StateError
from vflens.models.part import PassivePart, Taking
from vflens.models.whole import BOTTOM
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite
from vflens.types import Array, Exchange, Phase, Point, Released

_NO_ROWS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Batch:
    """A step's rows (n,), inputs (n, d), soft labels (n, k), in the exchange that sends their embedding."""

    exchange: Exchange
    rows: Array
    x: Array
    y: Array


class SplitFedRounds(LocalRounds):
    """Rounds whose first step brings parameters and the others a gradient."""

    def __init__(self, party: PreparedClient) -> None:
        super().__init__(party)
        self._run = run = party.run
        self._bottom: PassivePart = run.federation.model.passive_part(party.site(run.federation))
        party.gate.keep_last(run.federation.epoch_steps)
        party.gate.release_once()  # a server may send other gradients in a round that it begins anew
        self._start: Mapping[str, Array] = {}  # the bottom model of the round, by the names of the whole
        self._batches: list[Array] = []  # of the round
        self._next = -1  # the step that may come next
        self._sent: Batch | None = None

    def _answer(self, act: Step) -> StepReply:
        party, federation = self._party, self._party.run.federation
        kept = (party.gate.kept(point, act.exchange.step) for point in (Point.EMBEDDING, Point.UPDATE))
        answered = next((answer for answer in kept if answer is not None), None)
        if answered is not None:
            return StepReply(answered)
        if act.exchange.step % federation.epoch_steps:
            party.reached.check_training(act.exchange.step)
            reply = self._next_step(act)
            if reply.released is not None and reply.released.point is Point.UPDATE:
                self._keep_memory()
            return reply
        self._learn(self._checked(act))
        if act.exchange.step == federation.steps:
            return StepReply(None)
        return self._begin(act.exchange, self._taken)

    def _due_at(self, step: int) -> Mapping[str, Array]:
        """See :meth:`LocalRounds._due_at`: a top model stays at its server to the end."""
        due = super()._due_at(step)
        if step == self._party.run.federation.steps:
            return due
        return {name: value for name, value in due.items() if name.startswith(BOTTOM)}

    def _begin(self, exchange: Exchange, parameters: Mapping[str, Array]) -> StepReply:
        """Set the bottom model to that of a round, and release the embedding of its first batch."""
        federation = self._run.federation
        assert isinstance(self._bottom, Taking)
        self._start = {n: v for n, v in parameters.items() if n.startswith(BOTTOM)}
        self._bottom.take({name.removeprefix(BOTTOM): value for name, value in self._start.items()})
        rows = federation.rows_of(self._party.name, Phase.TRAIN)
        self._batches = list(local_batches(federation, rows, self._party.secret, exchange.round))
        return self._embedded(exchange, 0)

    def _next_step(self, act: Step) -> StepReply:
        """Learn from the gradient of the step before, then release the next embedding, or the round's update.

        Raises:
            StateError: the step is not the next one of the round that :meth:`_begin` began.
            ProtocolError: the gradient is not that of the embedding before.
        """
        exchange, place = act.exchange, act.exchange.step % self._run.federation.epoch_steps
        if exchange.step != self._next or self._sent is None or place > len(self._batches):
            raise StateError(
                f"step {exchange.step} is not due at {self._party.name!r}: begin round {exchange.round} "
                "with its parameters"
            )
        received, sent = self._gradient(act.received, self._sent), self._sent
        g = self._party.chain.fold("on_received", received.tensor("gradient"), sent.exchange, sent.rows)
        self._bottom.learn(sent.x, g, sent.exchange)
        self._party.transcript.record(received)
        if place < len(self._batches):
            return self._embedded(exchange, place)
        self._sent = None
        learned = self._bottom.parameters()
        update = {name: learned[name.removeprefix(BOTTOM)] - value for name, value in self._start.items()}
        return StepReply(self._party.gate.release(Point.UPDATE, exchange, _NO_ROWS, update))

    def _embedded(self, exchange: Exchange, place: int) -> StepReply:
        batch, fold = self._batches[place], self._party.chain.fold
        x = fold("on_batch", self._run.inputs[batch], exchange, batch)
        y = fold("on_batch_labels", self._run.soft_labels[batch], exchange, batch)
        self._sent, self._next = Batch(exchange, batch, x, y), exchange.step + 1
        values = {"embedding": self._bottom.forward(x, exchange), "labels": y}
        places = np.arange(len(batch), dtype=np.int32)  # in the batch: the server knows no row
        return StepReply(self._party.gate.release(Point.EMBEDDING, exchange, places, values))

    def _gradient(self, received: Released | None, sent: Batch) -> Released:
        due = sent.exchange, list(range(len(sent.x)))  # the places that the embedding was sent with
        if received is None or (received.exchange, received.rows.tolist()) != due:
            raise ProtocolError(f"step {sent.exchange.step + 1} carries no gradient of the embedding before")
        check_origin(received, self._party.leader, Point.GRADIENT)
        federation = self._run.federation
        finite(received, "gradient", (len(sent.x), federation.embedding_width), federation.dtype)
        return received
