"""A persistent stream in an event loop: written and read in the caller's own thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from vfl.acts import Act
from vfl.errors import UnavailableError
from vfl.link import Stream
from vfl.wire.channel import grpc, open_aio_channel
from vfl.wire.messages import Rpc
from vfl.wire.status import from_rpc

if TYPE_CHECKING:
    from vfl.wire.grpc_link import GrpcLink

R = TypeVar("R")


class AioStream(Stream[R]):
    """A stream of ``rpc`` over its own channel to the party of ``link``."""

    def __init__(self, rpc: Rpc, link: GrpcLink) -> None:
        self._rpc, self._link = rpc, link
        self._channel = open_aio_channel(link.address, link.limits)
        method: Any = self._channel.stream_stream(rpc.path, rpc.request.SerializeToString)
        self._call = method(metadata=link.metadata)

    async def send(self, act: Act[R]) -> None:
        """See :meth:`Stream.send`. A stream that ended says why when the reply is asked for."""
        try:
            async with asyncio.timeout(self._link.limits.step_seconds):
                await self._call.write(self._rpc.encode(act))
        except TimeoutError:
            self._call.cancel()
            raise self._overdue() from None
        except (asyncio.InvalidStateError, grpc.RpcError):
            return

    async def receive(self) -> R:
        """See :meth:`Stream.receive`.

        Raises:
            UnavailableError: no reply within ``limits.step_seconds``, or the party ended the stream.
        """
        seconds = self._link.limits.step_seconds
        try:
            async with asyncio.timeout(seconds):
                data: Any = await self._call.read()
        except TimeoutError:
            self._call.cancel()
            raise self._overdue() from None
        except grpc.RpcError as error:
            raise from_rpc(error, self._link.name, seconds) from None
        if data is grpc.aio.EOF:
            raise UnavailableError(f"party {self._link.name!r} ended the stream: it stopped; look at its log")
        reply: R = self._link.decode(self._rpc, data)
        return reply

    def _overdue(self) -> UnavailableError:
        seconds = self._link.limits.step_seconds
        return UnavailableError(
            f"party {self._link.name!r} did not answer a step within {seconds:g} s: raise limits.step_seconds or look at its log"
        )

    async def close(self) -> None:
        """See :meth:`Stream.close`."""
        self._call.cancel()
        await self._channel.close()
