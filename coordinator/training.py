"""The training loop: embeddings up from the passive parties, combined to the active one, its gradient down.

One step is two hops. The coordinator sums and relays in one thread: its streams are coroutines, because
waking another thread for every message costs more than the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from vfl.acts import Step, StepReply
from vfl.embeddings import TrainingStreams, combined, open_stream
from vfl.errors import ProtocolError
from vfl.federation import Federation
from vfl.gate import ReleaseGate
from vfl.link import Link, Stream
from vfl.logistic import batches
from vfl.payload import check_origin, finite
from vfl.randomness import stream
from vfl.transcript import Transcript
from vfl.types import Array, Exchange, Phase, Point, Released

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
            downward = open_stream(active, streams)
            upward = await streams.enter_async_context(TrainingStreams.opened(self.federation, passive))
            return await self._epochs(upward, downward, start, gradient)

    async def _epochs(
        self, upward: TrainingStreams, downward: Stream[StepReply], start: int, gradient: Released | None
    ) -> int:
        training, step = self.federation.training, 0
        for epoch in range(training.epochs):
            stop = False
            for rows in batches(
                self.federation.train, training.batch_size, stream(self.secret, "batches", epoch)
            ):
                if step >= start:
                    exchange = Exchange(self.federation.run, Phase.TRAIN, epoch, step)
                    if gradient is not None:  # first: a restart sends it again to those it did not reach
                        self.transcript.record(gradient)
                    await upward.send(exchange, rows, gradient)
                    embeddings = await upward.receive(exchange, rows)
                    gradient, stop = await self._gradient(downward, exchange, rows, embeddings)
                step += 1
            self.report("training", epoch + 1, epoch + 1 if stop else training.epochs)
            if stop:
                break
        if gradient is not None:
            self.transcript.record(gradient)
        after = Exchange(self.federation.run, Phase.TRAIN, step // self.federation.epoch_steps, step)
        await upward.deliver(after, gradient)
        return step

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
