"""A persistent stream in an event loop: written and read in the caller's own thread."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Hashable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from vflens.config import Limits
from vflens.errors import UnavailableError
from vflens.protocol.acts import Act
from vflens.protocol.link import Stream
from vflens.wire.channel import Shared, grpc, open_aio_channel
from vflens.wire.messages import Rpc
from vflens.wire.status import from_rpc

if TYPE_CHECKING:
    from vflens.wire.tls.counterpart import Counterpart

R = TypeVar("R")

_channels = Shared[grpc.aio.Channel]()


class AioStream(Stream[R]):
    """A stream of ``rpc`` to ``party`` at ``address``, opened with the caller's ``metadata``; over ``tls`` it
    has a channel of its own.
    """

    def __init__(
        self,
        rpc: Rpc,
        party: str,
        address: str,
        limits: Limits,
        metadata: tuple[tuple[str, str], ...],
        *,
        tls: Counterpart | None = None,
    ) -> None:
        self._rpc, self._party, self._step_seconds = rpc, party, limits.step_seconds
        self._address, self._tls = address, tls
        self._loop = asyncio.get_running_loop()
        self._key: Hashable = object() if tls else (address, limits, self._loop)
        channel = _channels.take(self._key, partial(open_aio_channel, address, limits, tls))
        method: Any = channel.stream_stream(rpc.path, rpc.request.SerializeToString)
        self._call = method(metadata=metadata)
        self._awaited_since = math.inf
        self._overdue = False
        self._timer = self._loop.call_later(self._step_seconds, self._look)

    async def send(self, act: Act[R]) -> None:
        """See :meth:`Stream.send`. A stream that ended raises its error at the next receive."""
        with suppress(asyncio.InvalidStateError, grpc.RpcError):
            await self._in_time(self._call.write(self._rpc.encode(act)))

    async def receive(self) -> R:
        """See :meth:`Stream.receive`.

        Raises:
            UnavailableError: no reply within ``limits.step_seconds``, or the party ended the stream.
        """
        try:
            data: Any = await self._in_time(self._call.read())
        except grpc.RpcError as error:
            found = from_rpc(error, self._party, self._step_seconds)
            raise self._tls.cause(found, self._address) if self._tls else found from None
        if data is grpc.aio.EOF:
            raise UnavailableError(f"party {self._party!r} ended the stream: it stopped; look at its log")
        reply: R = self._rpc.read_reply(data, self._party)
        return reply

    async def _in_time(self, message: Awaitable[Any]) -> Any:
        """Await one message, at most ``limits.step_seconds`` long."""
        self._awaited_since = self._loop.time()
        try:
            return await message
        except asyncio.CancelledError:
            if not self._overdue:
                raise
            raise UnavailableError(
                f"party {self._party!r} did not answer a step within {self._step_seconds:g} s: raise "
                "limits.step_seconds or look at its log"
            ) from None
        finally:
            self._awaited_since = math.inf

    def _look(self) -> None:
        """End the stream if a message is overdue, else look again: a timer for every message would cost more
        than the message's codec.
        """
        now = self._loop.time()
        if now - self._awaited_since >= self._step_seconds:
            self._overdue = True
            self._call.cancel()
        else:
            self._timer = self._loop.call_at(min(self._awaited_since, now) + self._step_seconds, self._look)

    async def close(self) -> None:
        self._timer.cancel()
        self._call.cancel()
        if channel := _channels.leave(self._key):
            await channel.close()
