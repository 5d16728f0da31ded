"""The training loop: embeddings up from the passive parties, combined to the active one, its gradient down.

One step is two hops. The coordinator sums and relays in one thread: its streams are coroutines, because
waking another thread for every message costs more than the message (docs/adr/0010).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from vflens.errors import ProtocolError
from vflens.member.gate import ReleaseGate
from vflens.member.recovery import RecoveryLog, check_state
from vflens.models.softmax_regression import batches
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite
from vflens.protocol.link import Link, Stream
from vflens.protocol.streams import open_stream
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.embeddings import TrainingStreams, combined
from vflens.randomness import stream
from vflens.storage.transcript import Transcript
from vflens.types import Array, Exchange, Phase, Point, Progress, Released, sealed


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """The loop's data: the aligned run, the coordinator's secret, gate and logs."""

    federation: VerticalAgreement
    secret: bytes
    gate: ReleaseGate
    transcript: Transcript
    recovery: RecoveryLog
    report: Progress
    keep: Callable[[Released], None]  # called with each gradient once it is logged

    async def run(
        self, passive: Sequence[Link], active: Link, start: int, gradient: Released | None, *, over: bool
    ) -> int:
        """Train from step ``start`` on, whose predecessor's gradient is ``gradient``; the number of steps.
        Where training is ``over``, only that gradient is delivered.

        Raises:
            ProtocolError: a party's answer is wrong.
            UnavailableError: a party did not answer in time.
        """
        async with AsyncExitStack() as streams:
            downward = open_stream(active, streams)
            upward = await streams.enter_async_context(TrainingStreams.opened(self.federation, passive))
            if not over:
                start, gradient = await self._epochs(upward, downward, start, gradient)
            await self._finish(upward, start, gradient)
            return start

    async def _finish(self, upward: TrainingStreams, steps: int, gradient: Released | None) -> None:
        """Deliver the last ``gradient``."""
        self._log(gradient)
        self._record(gradient)
        after = Exchange(self.federation.run, Phase.TRAIN, steps // self.federation.epoch_steps, steps)
        await upward.deliver(after, gradient)

    async def _epochs(
        self, upward: TrainingStreams, downward: Stream[StepReply], start: int, gradient: Released | None
    ) -> tuple[int, Released | None]:
        """The number of steps, and the last gradient."""
        training, step = self.federation.training, 0
        for epoch in range(training.epochs):
            stop = False
            for rows in batches(
                self.federation.train, training.batch_size, stream(self.secret, "batches", epoch)
            ):
                if step >= start:
                    exchange = Exchange(self.federation.run, Phase.TRAIN, epoch, step)
                    self._log(gradient)  # first: a restart sends it again to parties that did not get it
                    await upward.send(exchange, rows, gradient)
                    self._record(gradient)  # while the passive parties compute
                    embeddings = await upward.receive(exchange, rows, gradient)
                    gradient, stop = await self._gradient(downward, exchange, rows, embeddings)
                step += 1
            self.report("training", epoch + 1, epoch + 1 if stop else training.epochs)
            if stop:
                break
        return step, gradient

    def _log(self, gradient: Released | None) -> None:
        """Log ``gradient``, unless the log has it after a restart: a sampled transcript may lack it."""
        if gradient is not None and gradient.exchange.step > self.recovery.learned:
            self.recovery.append(gradient)
            self.recovery.mark_learned(gradient.exchange.step)
            self.keep(gradient)

    def _record(self, gradient: Released | None) -> None:
        if gradient is not None:
            self.recovery.remember(gradient)
            self.transcript.link()
            self.recovery.checkpoint_if_due(lambda: _state(gradient))

    async def _gradient(
        self, downward: Stream[StepReply], exchange: Exchange, rows: Array, embeddings: Sequence[Released]
    ) -> tuple[Released, bool]:
        """The active party's gradient in the combined ``embeddings``, and whether it stops training."""
        released = self.gate.release(
            Point.EMBEDDING, exchange, rows, {"embedding": combined(embeddings, self.federation)}
        )
        await downward.send(Step(exchange, rows, released))
        self.transcript.record(*embeddings)  # while the active party computes
        answer = await downward.receive()
        gradient = answer.released
        if gradient is None or gradient.exchange != exchange or gradient.rows.tobytes() != rows.tobytes():
            raise ProtocolError(f"the active party answered step {exchange.step} without its gradient")
        check_origin(gradient, self.federation.active.name, Point.GRADIENT)
        shape, dtype = (len(rows), self.federation.combined_width), self.federation.dtype
        finite(gradient, "gradient", shape, dtype, sent=released.tensors)
        return gradient, answer.stop


def _state(gradient: Released) -> dict[str, Array]:
    exchange = np.array([gradient.exchange.round, gradient.exchange.step])
    return {"exchange": exchange, "rows": gradient.rows, "gradient": gradient.tensor("gradient")}


def restored(state: Mapping[str, Array], federation: VerticalAgreement) -> Released:
    """The active party's gradient in a checkpoint of the coordinator.

    Raises:
        ProtocolError: it has none.
    """
    due: dict[str, Array] = {"exchange": np.zeros(2, np.int64), "rows": np.zeros(0, np.int32)}
    check_state(state, due | {"gradient": np.zeros((0, 0))})
    exchange = Exchange(federation.run, Phase.TRAIN, *state["exchange"].tolist())
    tensors = {"gradient": sealed(state["gradient"])}
    return Released(federation.active.name, exchange, Point.GRADIENT, sealed(state["rows"]), tensors=tensors)
