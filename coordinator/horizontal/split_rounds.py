"""SplitFed at the server: a top model for each client learns with it batch by batch, then all are averaged.

Thapa et al., 2022, algorithm 1, whose fed server and main server are one process here.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from vflens.errors import ProtocolError
from vflens.member.gate import ReleaseGate
from vflens.member.recovery import RecoveryLog
from vflens.models.part import ActivePart
from vflens.models.whole import BOTTOM, TOP
from vflens.plugins.views.horizontal import Parameters
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite, finite_tensors
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.link import Link, Stream
from vflens.protocol.streams import open_stream
from vflens.recorded.horizontal.parameters import added, averaged
from vflens.storage.transcript import Transcript
from vflens.types import Array, Exchange, Phase, Point, Progress, Released

_NO_ROWS = np.zeros(0, np.int32)
_Streams: TypeAlias = Mapping[str, Stream[StepReply]]
_FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class SplitRounds:
    """The loop's data: the run, the server's gate and logs."""

    federation: HorizontalAgreement
    gate: ReleaseGate
    transcript: Transcript
    recovery: RecoveryLog
    report: Progress
    top: Callable[[str, Mapping[str, Array]], ActivePart]  # of a client, with parameters by name
    keep: Callable[[Parameters], None]  # called with the parameters after each round

    async def run(self, clients: Sequence[Link], start: int, parameters: Parameters) -> Parameters:
        """Train ``parameters`` of bottom and top model from round ``start`` on with ``clients`` in name
        order; those after the last round, which all clients then have.

        Raises:
            ProtocolError: a client's answer is wrong.
            UnavailableError: a client did not answer in time.
        """
        self.gate.keep_last(self.federation.epoch_steps)
        async with AsyncExitStack() as stack:
            streams = {link.name: open_stream(link, stack) for link in clients}
            for number in range(start, self.federation.epochs):
                parameters = await self._round(streams, number, parameters)
                self.report("training", number + 1, self.federation.epochs)
            last = self._exchange(self.federation.epochs, 0)
            await _asked(streams, last, dict.fromkeys(streams, self._sent(last, parameters)))
            return parameters

    async def _round(self, streams: _Streams, number: int, parameters: Parameters) -> Parameters:
        bottom = {name: value for name, value in parameters.items() if name.startswith(BOTTOM)}
        of_top = {n.removeprefix(TOP): v for n, v in parameters.items() if n.startswith(TOP)}
        tops = {name: self.top(name, of_top) for name in streams}
        sent = dict.fromkeys(streams, self._sent(self._exchange(number, 0), bottom))
        updates: list[Released] = []
        for place in range(self.federation.epoch_steps):
            exchange = self._exchange(number, place)
            going = {n: s for n, s in streams.items() if self.federation.steps_of(n) >= place}
            answers = await _asked(going, exchange, sent)
            ended = [name for name in answers if self.federation.steps_of(name) == place]
            updates += [self._update(answers.pop(name), name, exchange, bottom) for name in ended]
            sent = self._learned(exchange, answers, tops)
        return self._averaged(number, parameters, bottom, updates, tops)

    def _exchange(self, number: int, place: int) -> Exchange:
        step = number * self.federation.epoch_steps + place
        return Exchange(self.federation.run, Phase.TRAIN, number, step)

    def _sent(self, exchange: Exchange, parameters: Parameters) -> Released:
        kept = self.gate.kept(Point.PARAMETERS, exchange.step)
        return kept or self.gate.release(Point.PARAMETERS, exchange, _NO_ROWS, parameters)

    def _learned(
        self, exchange: Exchange, answers: Mapping[str, Released | None], tops: Mapping[str, ActivePart]
    ) -> dict[str, Released]:
        """The gradient for each client in its embedding, after its top model has learned from it."""
        gradients = {}
        for name, released in answers.items():
            embedding, labels = self._embedding(released, name, exchange)
            nothing = np.zeros((len(labels), 0))
            result = tops[name].loss_gradient(embedding, nothing, labels, exchange)
            result.learn()
            gradients[name] = result.gradient
        return self._released(exchange, gradients) if gradients else {}

    def _released(self, exchange: Exchange, gradients: Mapping[str, Array]) -> dict[str, Released]:
        """The gradients of all clients are released at a time, and each gets its own rows of them."""
        ends = np.cumsum([len(gradient) for gradient in gradients.values()])
        rows = np.arange(ends[-1], dtype=np.int32)
        sent = self.gate.kept(Point.GRADIENT, exchange.step) or self.gate.release(
            Point.GRADIENT, exchange, rows, {"gradient": np.concatenate(list(gradients.values()))}
        )
        parts = np.split(sent.tensor("gradient"), ends[:-1])
        return {
            name: replace(sent, rows=rows[: len(part)], tensors={"gradient": part})
            for name, part in zip(gradients, parts, strict=True)
        }

    def _embedding(self, released: Released | None, name: str, exchange: Exchange) -> tuple[Array, Array]:
        """Embedding (n, w) and labels (n, k) of a client's batch, recorded."""
        federation, n = self.federation, 0 if released is None else len(released.rows)
        if released is None or released.exchange != exchange or not 0 < n <= federation.training.batch_size:
            raise ProtocolError(f"client {name!r} answered step {exchange.step} without an embedding of it")
        check_origin(released, name, Point.EMBEDDING)
        if released.rows.tolist() != list(range(n)):
            raise ProtocolError(f"client {name!r} sent other rows in step {exchange.step} than 0 to {n - 1}")
        due = {
            "embedding": ((n, federation.embedding_width), federation.dtype),
            "labels": ((n, federation.n_classes), _FLOAT64),
        }
        for tensor, (shape, dtype) in due.items():
            finite(replace(released, tensors={tensor: released.tensor(tensor)}), tensor, shape, dtype)
        if set(released.tensors or ()) != set(due):
            raise ProtocolError(f"client {name!r} sent more in step {exchange.step} than {sorted(due)}")
        self.transcript.record(released)
        return released.tensor("embedding"), released.tensor("labels")

    def _update(
        self, released: Released | None, name: str, exchange: Exchange, bottom: Parameters
    ) -> Released:
        if released is None or released.exchange != exchange or len(released.rows):
            raise ProtocolError(f"client {name!r} answered round {exchange.round} without its update")
        check_origin(released, name, Point.UPDATE)
        finite_tensors(released, bottom, sent=bottom)
        self.transcript.record(released)
        return released

    def _averaged(
        self,
        number: int,
        parameters: Parameters,
        bottom: Parameters,
        updates: Sequence[Released],
        tops: Mapping[str, ActivePart],
    ) -> Parameters:
        """The next parameters, on disk: a round that was interrupted begins anew."""
        top = {name: value for name, value in parameters.items() if name.startswith(TOP)}
        weights = self.federation.weights(tops)
        learned = {client: part.parameters() for client, part in tops.items()}
        terms = (
            (name, weights[client] * (own[name.removeprefix(TOP)].astype(np.float64) - value))
            for client, own in sorted(learned.items())
            for name, value in top.items()
        )
        following = averaged(self.federation, bottom, updates) | added(top, terms)
        self.recovery.mark_learned((number + 1) * self.federation.epoch_steps - 1)
        self.recovery.checkpoint(following)
        self.transcript.link()
        self.keep(following)
        return following


async def _asked(
    streams: _Streams, exchange: Exchange, sent: Mapping[str, Released]
) -> dict[str, Released | None]:
    """The answers to what was ``sent`` over ``streams``, whose clients work side by side."""
    for name, stream in streams.items():
        await stream.send(Step(exchange, _NO_ROWS, sent[name]))
    return {name: (await stream.receive()).released for name, stream in streams.items()}
