"""Protected training as the active party leads it: it opens each step with the other computing party.

The coordinator starts it, draws the order of every epoch and deals masks; nothing that is opened reaches it.
"""

from collections.abc import Mapping, Sequence
from threading import Event

import numpy as np

from vflens.clients.vertical.aligned_run import LabelledRun
from vflens.clients.vertical.clear.direct_training import ordered
from vflens.clients.vertical.party import VerticalParty
from vflens.clients.vertical.protected.computing import Computing
from vflens.errors import ProtocolError, UnavailableError
from vflens.models.part import Taking
from vflens.protocol.acts import Step, StepReply, Trained
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.link import Link, Reply, Stream
from vflens.protocol.mask_acts import Deal, MaskShares
from vflens.protocol.vertical.embeddings import TrainingStreams
from vflens.protocol.vertical.shares import SharedRun, checked, sent
from vflens.types import Array, Exchange, Phase, Point, Released
from vflens.words import counted

_NO_ROWS = np.zeros(0, np.int32)


class ProtectedTraining:
    """The loop that ``party`` runs over its links to the ``passive`` parties, in name order.

    ``own`` are its shares; ``paused``: the coordinator came back.
    """

    def __init__(
        self,
        party: VerticalParty[LabelledRun],
        own: Computing,
        coordinator: Link,
        passive: Sequence[Link],
        paused: Event,
    ) -> None:
        self._party, self._coordinator, self._passive = party, coordinator, passive
        self._own, self._run, self._paused = own, own.run, paused
        self._other = self._run.computing[1]
        self._dealt = DealtMasks(self._run, coordinator)

    async def run(self) -> Trained:
        """Train to the end, from the step after the last that was taken.

        Raises:
            ProtocolError: a party's answer is wrong.
            UnavailableError: a party did not answer in time, or the run is over.
        """
        federation, first = self._run.federation, self._own.step
        async with TrainingStreams.opened(federation, self._passive) as opened:
            self._streams = opened.streams
            await self._open_features()
            for number in range(first // federation.epoch_steps, federation.training.epochs):
                order, size = ordered(self._coordinator, federation, number), federation.training.batch_size
                for start in range((self._own.step % federation.epoch_steps) * size, len(order), size):
                    await self._step(order[start : start + size])
            ordered(self._coordinator, federation, federation.training.epochs)
            await self._finish()
        return Trained(first, self._own.step)

    async def _open_features(self) -> None:
        """Open E, whose columns each have a mask; first all other parties share theirs."""
        for number, rows in enumerate(self._run.chunks):
            exchange = Exchange(self._run.federation.run, Phase.DISCLOSE, MODEL_VERSION, number)
            shared = {p: await self._columns_of(p, exchange, rows) for p in self._own.others}
            share = sent({"features share": self._own.features_share(rows, shared)})
            released = self._party.gate.release(Point.SHARES, exchange, rows, share)
            due = {"features": (len(rows), self._run.width)}
            found = await self._asked(self._other, Step(exchange, rows, released), due)
            self._own.take_features(rows, found["features"])

    async def _columns_of(self, party: str, exchange: Exchange, rows: Array) -> Array:
        part = self._run.columns[party]
        due = {"columns share": (len(rows), part.stop - part.start)}
        return (await self._asked(party, Step(exchange, rows, None), due))["columns share"]

    async def _asked(self, party: str, act: Step, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """The shares that ``party`` answers with, logged."""
        reply = await self._reply(self._streams[party], act)
        found = checked(reply, party, Point.SHARES, shapes)
        assert reply is not None
        with self._party.lock:
            self._party.transcript.record(reply)
        return found

    async def _reply(self, stream: Stream[StepReply], act: Step) -> Released | None:
        if self._party.stopped.is_set():
            raise UnavailableError(f"run {act.exchange.run!r} is over: no further step is taken")
        if self._paused.is_set():
            raise UnavailableError(f"the coordinator of run {act.exchange.run!r} came back: it asks anew")
        await stream.send(act)
        released = (await stream.receive()).released
        if released is not None and (
            released.exchange != act.exchange or released.rows.tobytes() != act.rows.tobytes()
        ):
            raise ProtocolError(f"step {act.exchange.step} was answered with another exchange or other rows")
        return released

    async def _step(self, rows: Array) -> None:
        self._run.federation.checked_rows(rows, Phase.TRAIN)
        own, first = self._own, 2 * self._own.step
        opening = own.begin(rows, self._dealt.of(own.step))
        before = {"change": own.change, "rho": own.rho} if first else {}
        answer = await self._opened(first, rows, {**before, "delta share": next(opening)})
        self._check_same(answer, before)
        delta = answer["delta"]
        logits = opening.send(delta) + answer["logits share"]
        mine = {"delta": delta, "logits": logits, "rho share": opening.send(logits)}
        answer = await self._opened(first + 1, rows, mine)
        self._check_same(answer, mine)
        change = opening.send(answer["rho"]) + answer["change share"]
        own.rho = answer["rho"]
        own.finish(opening, change)
        self._step_taken()

    async def _opened(self, number: int, rows: Array, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The other computing party's answer to the message ``number``; one that is known is not asked for
        again.
        """
        exchange = self._run.exchange(number)
        answer = self._own.known.get(number)
        if answer is None:
            released = self._party.gate.release(Point.OPENING, exchange, rows, sent(arrays))
            answer = await self._reply(self._streams[self._other], Step(exchange, rows, released))
        found = checked(answer, self._other, Point.OPENING, self._run.shapes(number, len(rows), answer=True))
        assert answer is not None
        self._own.known[number] = answer
        self._log(answer)
        return found

    def _check_same(self, answer: Mapping[str, Array], mine: Mapping[str, Array]) -> None:
        """Refuse an answer that says other than this party what was opened."""
        odd = [name for name in answer if name in mine and answer[name].tobytes() != mine[name].tobytes()]
        if odd:
            raise ProtocolError(
                f"{self._other!r} took step {self._own.step} with another {odd[0]!r} than was opened: start "
                "both parties with the folders of this run"
            )

    async def _finish(self) -> None:
        """Tell the other computing party what was opened last, and give every party its parameters."""
        own, run = self._own, self._run
        theirs, before = run.columns[self._other], {"change": own.change, "rho": own.rho}
        last = {**before, "parameters share": own.theta[theirs]}
        answer = await self._opened(2 * own.step, _NO_ROWS, last)
        self._check_same(answer, before)
        theta = own.theta.copy()
        theta[np.arange(run.width) < theirs.start] += answer["parameters share"][: theirs.start]
        theta[theirs.stop :] += answer["parameters share"][theirs.start :]
        for number, party in enumerate(own.others, len(run.chunks)):
            exchange = Exchange(run.federation.run, Phase.DISCLOSE, MODEL_VERSION, number)
            share = sent({"parameters": theta[run.columns[party]]})
            released = self._party.gate.release(Point.SHARES, exchange, _NO_ROWS, share)
            await self._reply(self._streams[party], Step(exchange, _NO_ROWS, released))
        self._take_model(theta[run.columns[own.name]])

    def _log(self, answer: Released) -> None:
        """Log what the other computing party sent, once."""
        party, number = self._party, answer.exchange.step
        with party.lock:
            if number > party.recovery.learned:
                party.recovery.append(answer)
                party.recovery.mark_learned(number)
                party.transcript.record(answer)
                party.transcript.link()

    def _step_taken(self) -> None:
        """Forget what was known of a step that is taken.

        What was logged of later steps before a restart stays; a checkpoint would empty that log.
        """
        with self._party.lock:
            self._own.forget_taken()
            if not self._own.known:
                self._party.recovery.checkpoint_if_due(self._party.kept_state)

    def _take_model(self, own: Array) -> None:
        """Keep its part of the model, ``own`` rows of θ, for good."""
        party = self._party
        with party.lock:
            assert isinstance(party.run.model, Taking)
            party.run.model.take(self._own.own_parameters(own))
            party.recovery.checkpoint(party.kept_state())


class DealtMasks:
    """What the dealer sends; the next steps' is asked for while those before are taken."""

    def __init__(self, run: SharedRun, coordinator: Link) -> None:
        self._run, self._coordinator = run, coordinator
        self._next: tuple[range, Reply[MaskShares]] | None = None
        self._numbers: dict[int, Array] = {}

    def of(self, step: int) -> Array:
        """The numbers uint64 (m,) of ``step``.

        Raises:
            ProtocolError: the dealer sent fewer or more.
        """
        if step not in self._numbers:
            steps, reply = self._asked(step) if self._next is None else self._next
            self._numbers = self._split(steps, reply.result().numbers)
            self._next = self._asked(steps.stop) if steps.stop < self._run.federation.steps else None
        return self._numbers[step]

    def _asked(self, step: int) -> tuple[range, Reply[MaskShares]]:
        act = Deal(self._run.federation.run, step)
        return self._run.dealt_steps(step), self._coordinator.submit(act)

    def _split(self, steps: range, numbers: Array) -> dict[int, Array]:
        sizes = [self._run.mask_sizes(self._run.rows_in(step))[1] for step in steps]
        if len(numbers) != sum(sizes):
            raise ProtocolError(
                f"the dealer sent {counted(len(numbers), 'number')} for steps {steps.start} to "
                f"{steps.stop - 1}: {sum(sizes)} are due, use the same version everywhere"
            )
        return dict(zip(steps, np.split(numbers, np.cumsum(sizes)[:-1]), strict=True))
