"""The rounds of a horizontal run: parameters down to every client, updates up, their weighted sum."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from vflens.errors import ProtocolError
from vflens.member.gate import ReleaseGate
from vflens.member.recovery import RecoveryLog
from vflens.plugins.views.horizontal import Parameters
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.link import Link, Stream
from vflens.protocol.streams import open_stream
from vflens.recorded.horizontal.parameters import averaged, check_update
from vflens.storage.transcript import Transcript
from vflens.types import Exchange, Phase, Point, Progress, Released

_NO_ROWS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Rounds:
    """The loop's data: the run, the server's gate and logs."""

    federation: HorizontalAgreement
    gate: ReleaseGate
    transcript: Transcript
    recovery: RecoveryLog
    report: Progress
    participants: Callable[[int], Sequence[str]]  # of a round in name order; after the last one all
    keep: Callable[[Parameters], None]  # called with the parameters after each round

    async def run(self, clients: Sequence[Link], start: int, parameters: Parameters) -> Parameters:
        """Train ``parameters`` from round ``start`` on with ``clients`` in name order; those after the last
        round, which all clients then have.

        Raises:
            ProtocolError: a client's answer is wrong.
            UnavailableError: a client did not answer in time.
        """
        async with AsyncExitStack() as stack:
            streams = {link.name: open_stream(link, stack) for link in clients}
            for number in range(start, self.federation.epochs):
                asked = {name: streams[name] for name in self.participants(number)}
                updates = await self._updates(asked, number, parameters)
                parameters = self._learned(updates, parameters)
                self.report("training", number + 1, self.federation.epochs)
            present = {name: streams[name] for name in self.participants(self.federation.epochs)}
            await self._ask(present, self.federation.epochs, parameters)
            return parameters

    async def _ask(
        self, streams: Mapping[str, Stream[StepReply]], number: int, parameters: Parameters
    ) -> dict[str, Released | None]:
        """Send ``parameters`` over ``streams``, whose clients work side by side, and wait for all answers."""
        exchange = Exchange(self.federation.run, Phase.TRAIN, number, number)
        sent = self.gate.answered(Point.PARAMETERS, exchange)
        if sent is None:
            sent = self.gate.release(Point.PARAMETERS, exchange, _NO_ROWS, parameters)
        masked = number < self.federation.epochs and self.federation.sent is Point.MASKED_UPDATE
        act = Step(exchange, _NO_ROWS, sent, tuple(streams) if masked else ())
        for stream in streams.values():
            await stream.send(act)
        return {name: (await stream.receive()).released for name, stream in streams.items()}

    async def _updates(
        self, streams: Mapping[str, Stream[StepReply]], number: int, parameters: Parameters
    ) -> list[Released]:
        answers = await self._ask(streams, number, parameters)
        return [self._checked(name, number, released, parameters) for name, released in answers.items()]

    def _checked(
        self, client: str, number: int, released: Released | None, parameters: Parameters
    ) -> Released:
        exchange = Exchange(self.federation.run, Phase.TRAIN, number, number)
        if released is None or released.exchange != exchange or len(released.rows):
            raise ProtocolError(f"client {client!r} answered round {number} without its update")
        check_update(released, client, self.federation, parameters)
        return released

    def _learned(self, updates: Sequence[Released], parameters: Parameters) -> Parameters:
        """The next parameters; the updates are logged first: a restart goes on with the next round."""
        for update in updates:
            self.recovery.append(update)
        self.recovery.mark_learned(updates[0].exchange.step)
        for update in updates:
            self.transcript.record(update)
        self.transcript.link()
        following = averaged(self.federation, parameters, updates)
        self.keep(following)
        self.recovery.checkpoint_if_due(lambda: following)
        return following
