"""The rounds of a horizontal run: parameters down to every client, updates up, their weighted sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from vflens.coordinator.training import Report
from vflens.errors import ProtocolError
from vflens.member.gate import ReleaseGate
from vflens.member.recovery import RecoveryLog
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite_tensors
from vflens.protocol.embeddings import open_stream
from vflens.protocol.horizontal import HorizontalFederation
from vflens.protocol.link import Link, Stream
from vflens.protocol.masked_update import check_masked, unmasked_mean
from vflens.storage.transcript import Transcript
from vflens.types import Array, Exchange, Phase, Point, Released

_NO_ROWS = np.zeros(0, np.int32)
Parameters = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Rounds:
    """The loop's data: the run, the server's gate and logs."""

    federation: HorizontalFederation
    gate: ReleaseGate
    transcript: Transcript
    recovery: RecoveryLog
    report: Report
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


def check_update(
    released: Released, client: str, federation: HorizontalFederation, parameters: Parameters
) -> None:
    """Refuse ``released`` unless it is an update of ``parameters`` by ``client``, masked where that is due.

    Raises:
        KnowledgeError: it was withheld.
        ProtocolError: of another client, or of other names, shapes or numbers.
    """
    check_origin(released, client, federation.sent)
    if federation.sent is Point.MASKED_UPDATE:
        check_masked(released, parameters)
    else:
        finite_tensors(released, parameters, sent=parameters)


def averaged(
    federation: HorizontalFederation, parameters: Parameters, updates: Sequence[Released]
) -> dict[str, Array]:
    """ω + Σ w_k Δ_k of a round's ``updates`` in name order, in float64, then in the precision of ω.

    A running variance that the noise of clients has made negative is 0.
    """
    return added(parameters, _terms(federation, parameters, sorted(updates, key=lambda u: u.sender)))


def added(parameters: Parameters, terms: Iterable[tuple[str, Array]]) -> dict[str, Array]:
    """``parameters`` and all ``terms`` by name, added in float64; running variances below 0 are 0."""
    totals = {name: value.astype(np.float64) for name, value in parameters.items()}
    for name, term in terms:
        totals[name] += term
    return {
        name: (np.maximum(total, 0) if name.endswith("running_var") else total).astype(parameters[name].dtype)
        for name, total in totals.items()
    }


def _terms(
    federation: HorizontalFederation, parameters: Parameters, updates: Sequence[Released]
) -> Iterator[tuple[str, Array]]:
    """By name what is added to ``parameters``, float64: each update with its weight; of masked ones the sum,
    in which the weights are.
    """
    if federation.sent is Point.MASKED_UPDATE:
        yield from unmasked_mean(federation, updates, parameters).items()
        return
    weights = federation.weights({update.sender for update in updates})
    for update in updates:
        for name in parameters:
            yield name, weights[update.sender] * update.tensor(name).astype(np.float64)
