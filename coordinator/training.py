"""The training loop: embeddings up from the passive parties, combined to the active one, its gradient down.

One step is two hops. The coordinator sums and relays in one thread: its streams are coroutines, because
waking another thread for every message costs more than the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from vfl.acts import Step, StepReply
from vfl.errors import ProtocolError
from vfl.federation import Federation
from vfl.gate import ReleaseGate
from vfl.link import Link, Stream
from vfl.logistic import batches
from vfl.payload import check_origin, finite
from vfl.randomness import stream
from vfl.transcript import Transcript
from vfl.types import Array, Exchange, Phase, Point, Released

_NO_ROWS = np.zeros(0, np.int32)
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """What the loop works with: the aligned run, the coordinator's secret, gate and transcript."""

    federation: Federation
    secret: bytes
    gate: ReleaseGate
    transcript: Transcript
    report: Report

    async def run(self, passive: Sequence[Link], active: Link, start: int, gradient: Released | None) -> int:
        """Train from step ``start`` on, whose predecessor's gradient is ``gradient``; the number of steps.

        Raises:
            ProtocolError: a party answered with something else than is due.
            UnavailableError: a party did not answer in time.
        """
        async with AsyncExitStack() as streams:
            upward, downward = {}, _opened(active, streams)
            for link in passive:
                upward[link.name] = _opened(link, streams)
            return await self._epochs(upward, downward, start, gradient)

    async def _epochs(
        self,
        upward: dict[str, Stream[StepReply]],
        downward: Stream[StepReply],
        start: int,
        gradient: Released | None,
    ) -> int:
        training, step = self.federation.training, 0
        for epoch in range(training.epochs):
            stop = False
            for rows in batches(
                self.federation.train, training.batch_size, stream(self.secret, "batches", epoch)
            ):
                if step >= start:
                    exchange = Exchange(self.federation.run, Phase.TRAIN, epoch, step)
                    embeddings = await self._embeddings(upward, exchange, rows, gradient)
                    gradient, stop = await self._gradient(downward, exchange, rows, embeddings)
                step += 1
            self.report("training", epoch + 1, epoch + 1 if stop else training.epochs)
            if stop:
                break
        await self._deliver_last(
            upward, Exchange(self.federation.run, Phase.TRAIN, training.epochs, step), gradient
        )
        return step

    async def _embeddings(
        self, upward: dict[str, Stream[StepReply]], exchange: Exchange, rows: Array, gradient: Released | None
    ) -> list[Released]:
        """The passive parties' embeddings of ``rows``, after they learned from ``gradient``."""
        if gradient is not None:  # before it is sent: a restart sends it again to those it did not reach
            self.transcript.record(gradient)
        for name, opened in upward.items():
            await opened.send(Step(exchange, rows, self._for(name, gradient)))
        embeddings = []
        for name, opened in upward.items():
            reply = await opened.receive()
            embeddings.append(checked_embedding(reply.released, name, exchange, rows, self.federation))
        return embeddings

    async def _gradient(
        self, downward: Stream[StepReply], exchange: Exchange, rows: Array, embeddings: Sequence[Released]
    ) -> tuple[Released, bool]:
        """The active party's gradient in the combined ``embeddings``, and whether it stops training."""
        released = self.gate.release(
            Point.EMBEDDING, exchange, rows, {"embedding": combined(embeddings, self.federation)}
        )
        await downward.send(Step(exchange, rows, released))
        for embedding in embeddings:  # while the active party computes
            self.transcript.record(embedding)
        answer = await downward.receive()
        gradient = answer.released
        if gradient is None or gradient.exchange != exchange or gradient.rows.tobytes() != rows.tobytes():
            raise ProtocolError(f"the active party answered step {exchange.step} without its gradient")
        check_origin(gradient, self.federation.active.name, Point.GRADIENT)
        finite(gradient, "gradient", (len(rows), self.federation.combined_width), self.federation.dtype)
        return gradient, answer.stop

    async def _deliver_last(
        self, upward: dict[str, Stream[StepReply]], exchange: Exchange, gradient: Released | None
    ) -> None:
        if gradient is not None:
            self.transcript.record(gradient)
        for name, opened in upward.items():
            await opened.send(Step(exchange, _NO_ROWS, self._for(name, gradient)))
        for opened in upward.values():
            await opened.receive()

    def _for(self, party: str, gradient: Released | None) -> Released | None:
        return None if gradient is None else self.federation.gradient_for(party, gradient)


def _opened(link: Link, streams: AsyncExitStack) -> Stream[StepReply]:
    """A training stream that ends with ``streams``."""
    opened = link.stream(Step)
    streams.push_async_callback(opened.close)
    return opened


def checked_embedding(
    released: Released | None, sender: str, exchange: Exchange, rows: Array, federation: Federation
) -> Released:
    """``released`` if it is ``sender``'s finite embedding of ``rows`` in this exchange.

    Raises:
        ProtocolError: it is not.
    """
    if released is None or released.exchange != exchange or released.rows.tobytes() != rows.tobytes():
        raise ProtocolError(
            f"party {sender!r} answered step {exchange.step} without the embedding of its exchange and rows"
        )
    check_origin(released, sender, Point.EMBEDDING)
    finite(released, "embedding", (len(rows), federation.widths[sender]), federation.dtype)
    return released


def combined(embeddings: Sequence[Released], federation: Federation) -> Array:
    """What the active party receives: the ``embeddings`` in party-name order, summed or side by side."""
    return federation.combined([e.tensor("embedding") for e in embeddings])
