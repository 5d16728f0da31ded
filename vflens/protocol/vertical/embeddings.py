"""Ask all passive parties for their embeddings: the aggregator does it in training and in prediction."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import numpy as np

from vflens.errors import ProtocolError
from vflens.protocol.acts import Forward, Step, StepReply
from vflens.protocol.checks import check_origin, finite
from vflens.protocol.link import Link, Stream
from vflens.protocol.streams import open_stream
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Array, Exchange, Point, Released

_NO_ROWS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class TrainingStreams:
    """One stream per passive party, in name order: rows and gradients to it, embeddings back."""

    federation: VerticalAgreement
    streams: Mapping[str, Stream[StepReply]]

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, federation: VerticalAgreement, passive: Sequence[Link]
    ) -> "AsyncIterator[TrainingStreams]":
        """The streams to ``passive``; they end with the context."""
        async with AsyncExitStack() as stack:
            yield cls(federation, {link.name: open_stream(link, stack) for link in passive})

    async def send(self, exchange: Exchange, rows: Array, gradient: Released | None) -> None:
        """Ask for the embeddings of ``rows``, after learning from ``gradient``; does not wait for them."""
        for name, stream in self.streams.items():
            own = None if gradient is None else self.federation.gradient_for(name, gradient)
            await stream.send(Step(exchange, rows, own))

    async def receive(self, exchange: Exchange, rows: Array, gradient: Released | None) -> list[Released]:
        """The embeddings of ``rows``, in party-name order, after ``gradient`` was sent.

        Raises:
            ProtocolError: a party's answer is wrong.
            UnavailableError: a party did not answer in time.
        """
        found = []
        for name, stream in self.streams.items():
            reply = await stream.receive()
            due = (name, exchange, rows, self.federation)
            found.append(checked_embedding(reply.released, *due, gradient=gradient))
        return found

    async def deliver(self, exchange: Exchange, gradient: Released | None) -> None:
        """Let all learn from ``gradient`` without a further request."""
        await self.send(exchange, _NO_ROWS, gradient)
        for stream in self.streams.values():
            await stream.receive()


def predicted_embeddings(
    federation: VerticalAgreement, passive: Sequence[Link], exchange: Exchange, rows: Array
) -> list[Released]:
    """The embeddings of prediction ``rows`` of all ``passive`` parties, in the order given.

    Raises:
        ProtocolError: a party's answer is wrong.
    """
    if not passive:
        return []
    act, (*others, last) = Forward(exchange, rows), passive
    waiting = [link.submit(act) for link in others]
    own = last.call(act)  # waits in this thread: a future would wake another one
    replies = [*(reply.result() for reply in waiting), own]
    return [
        checked_embedding(reply, link.name, exchange, rows, federation)
        for link, reply in zip(passive, replies, strict=True)
    ]


def checked_embedding(
    released: Released | None,
    sender: str,
    exchange: Exchange,
    rows: Array,
    federation: VerticalAgreement,
    *,
    gradient: Released | None = None,
) -> Released:
    """``released`` if it is ``sender``'s finite embedding of ``rows`` in this exchange, to which ``gradient``
    was sent.

    Raises:
        ProtocolError: it is not.
    """
    if released is None or released.exchange != exchange or released.rows.tobytes() != rows.tobytes():
        raise ProtocolError(
            f"party {sender!r} answered step {exchange.step} without the embedding of its exchange and rows"
        )
    check_origin(released, sender, Point.EMBEDDING)
    shape, sent = (len(rows), federation.widths[sender]), None if gradient is None else gradient.tensors
    finite(released, "embedding", shape, federation.dtype, sent=sent, most=federation.model.largest_part)
    return released


def combined(embeddings: Sequence[Released], federation: VerticalAgreement) -> Array:
    """The top model's input: the ``embeddings`` in party-name order, summed or concatenated."""
    return federation.combined([e.tensor("embedding") for e in embeddings])
