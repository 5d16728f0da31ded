"""The gRPC link: calls with deadlines, and streams for training steps."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from vflens.config import Limits
from vflens.errors import UnavailableError, VflensError
from vflens.protocol.acts import Act
from vflens.protocol.link import Link, Reply
from vflens.wire.aio_stream import AioStream
from vflens.wire.channel import (
    CALLEE_KEY,
    INCARNATION_KEY,
    PARTY_KEY,
    TOKEN_KEY,
    Shared,
    grpc,
    open_channel,
)
from vflens.wire.messages import RPCS, Rpc
from vflens.wire.sockets import check_listener
from vflens.wire.status import from_rpc

if TYPE_CHECKING:
    from vflens.wire.tls.counterpart import Counterpart

R = TypeVar("R")

_channels = Shared[grpc.Channel]()


class GrpcLink(Link):
    """``caller``'s connection to the party ``name`` at ``address``; both share ``token``. Over ``tls`` it
    shows a new certificate from the next call on. ``incarnation`` counts the caller's restarts.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        caller: str,
        token: str,
        limits: Limits,
        tls: Counterpart | None = None,
        incarnation: int = 0,
    ) -> None:
        self.name = name
        self.address = address
        self.limits = limits
        sent = {
            CALLEE_KEY: quote(name),
            PARTY_KEY: caller,
            TOKEN_KEY: token,
            INCARNATION_KEY: str(incarnation),
        }
        self._metadata = tuple(sent.items())
        self._is_checked = False
        self._tls = tls
        self._channels: dict[Hashable, grpc.Channel] = {}  # earlier ones finish their calls
        self._connect()

    def _connect(self) -> None:
        """Open a channel that shows the newest certificate; links that show none share one."""
        self._version = self._tls.version if self._tls else 0
        key: Hashable = object() if self._tls else (self.address, self.limits)
        opened = partial(open_channel, self.address, self.limits, self._tls)
        self._channel = self._channels[key] = _channels.take(key, opened)
        self._methods: dict[type[Act[Any]], Any] = {}  # those that were called

    def _method(self, act: type[Act[Any]]) -> Any:
        if not self._channels:
            raise ValueError("closed, as the library says of a channel")
        if self._tls is not None and self._tls.version != self._version:
            self._connect()
        if act not in self._methods:
            rpc = RPCS[act]
            self._methods[act] = self._channel.unary_unary(rpc.path, rpc.request.SerializeToString)
        return self._methods[act]

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Who calls, the token that proves it, and the number of its restarts.

        Raises:
            AccessError: another user of this machine could be the one who gets it.
            UnavailableError: nobody can be reached.
        """
        if not self._is_checked:  # once: a way to the socket that only this user can change stays so
            check_listener(self.address, self.name)
            self._is_checked = True
        return self._metadata

    def submit(self, act: Act[R]) -> Reply[R]:
        rpc = RPCS[type(act)]
        message = rpc.encode(act)
        try:
            call = self._method(type(act)).future(message, timeout=self._timeout(rpc), metadata=self.metadata)
        except ValueError as error:
            raise self._closed() from error
        return _GrpcReply(call, rpc, self)

    def call(self, act: Act[R]) -> R:
        """See :meth:`vflens.protocol.link.Link.call`; waits in the calling thread and wakes no other."""
        rpc = RPCS[type(act)]
        message = rpc.encode(act)
        try:
            data = self._method(type(act))(message, timeout=self._timeout(rpc), metadata=self.metadata)
        except ValueError as error:
            raise self._closed() from error
        except grpc.RpcError as error:
            raise self.cause(error) from None
        reply: R = rpc.read_reply(data, self.name)
        return reply

    def stream(self, act: type[Act[R]]) -> AioStream[R]:
        return AioStream(RPCS[act], self.name, self.address, self.limits, self.metadata, tls=self._tls)

    def cause(self, error: grpc.RpcError) -> VflensError:
        """Why a call failed."""
        found = from_rpc(error, self.name, self.limits.call_seconds)
        return self._tls.cause(found, self.address) if self._tls else found

    def close(self) -> None:
        """Close the channel, unless another link needs it; calls under way end with it."""
        for key in self._channels:
            if channel := _channels.leave(key):
                channel.close()
        self._channels = {}

    def _timeout(self, rpc: Rpc) -> float | None:
        return self.limits.call_seconds if rpc.timed else None

    def _closed(self) -> UnavailableError:
        """What a ``ValueError`` of the library means."""
        return UnavailableError(f"the link to {self.name!r} is closed: open another")


class _GrpcReply(Generic[R]):
    """The reply of a call under way."""

    def __init__(self, call: Any, rpc: Rpc, link: GrpcLink) -> None:
        self._call, self._rpc, self._link = call, rpc, link

    def result(self, timeout: float | None = None) -> R:
        try:
            data = self._call.result(timeout)
        except grpc.FutureTimeoutError:
            raise TimeoutError from None
        except grpc.RpcError as error:
            raise self._link.cause(error) from None
        except grpc.FutureCancelledError:
            raise UnavailableError(f"the link to {self._link.name!r} was closed: open another") from None
        reply: R = self._rpc.read_reply(data, self._link.name)
        return reply
