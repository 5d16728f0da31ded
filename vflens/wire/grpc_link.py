"""The gRPC link: unary calls with deadlines, and one persistent stream per streamed act.

A streamed reply is read by whoever asks for one, for those who asked before it too: no reader thread stands
between the socket and the caller. A watchdog ends a stream whose reply is overdue.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from vflens.config import Limits
from vflens.errors import UnavailableError
from vflens.protocol.acts import Act
from vflens.protocol.link import Link, Reply
from vflens.wire.aio_stream import AioStream
from vflens.wire.channel import PARTY_KEY, TOKEN_KEY, grpc, open_channel
from vflens.wire.messages import RPCS, Rpc
from vflens.wire.sockets import check_listener
from vflens.wire.status import from_rpc

R = TypeVar("R")


class GrpcLink(Link):
    """``caller``'s connection to the party ``name`` at ``address``; both share ``token``."""

    def __init__(self, name: str, address: str, *, caller: str, token: str, limits: Limits) -> None:
        self.name = name
        self.address = address
        self.limits = limits
        self._metadata = ((PARTY_KEY, caller), (TOKEN_KEY, token))
        self._is_checked = False
        self._channel = open_channel(address, limits)
        self._streams: dict[str, _Stream] = {}
        self._unary: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Who calls, and the token that proves it.

        Raises:
            AccessError: another user of this machine could be the one who gets it.
            UnavailableError: nobody can be reached.
        """
        if not self._is_checked:  # once: a way to the socket that only this user can change stays so
            check_listener(self.address, self.name)
            self._is_checked = True
        return self._metadata

    def submit(self, act: Act[R]) -> Reply[R]:
        """See :meth:`vflens.protocol.link.Link.submit`."""
        rpc = RPCS[type(act)]
        message = rpc.encode(act)
        if rpc.stream:
            return self._stream(rpc).send(message)
        try:
            call = self._method(rpc).future(message, timeout=self.limits.call_seconds, metadata=self.metadata)
        except ValueError as error:
            raise self._closed() from error
        return _UnaryReply(call, rpc, self)

    def call(self, act: Act[R]) -> R:
        """See :meth:`vflens.protocol.link.Link.call`; a unary call waits in the calling thread, which is
        faster than a future.
        """
        rpc = RPCS[type(act)]
        if rpc.stream:
            return self.submit(act).result()
        message = rpc.encode(act)
        try:
            data = self._method(rpc)(message, timeout=self.limits.call_seconds, metadata=self.metadata)
        except ValueError as error:
            raise self._closed() from error
        except grpc.RpcError as error:
            raise from_rpc(error, self.name, self.limits.call_seconds) from None
        reply: R = rpc.read_reply(data, self.name)
        return reply

    def open(self, rpc: Rpc, requests: Iterator[Any]) -> Any:
        """A new stream of ``rpc`` fed by ``requests``."""
        method: Any = self._channel.stream_stream(rpc.path, rpc.request.SerializeToString)
        try:
            return method(requests, metadata=self.metadata)
        except ValueError as error:
            raise self._closed() from error

    def stream(self, act: type[Act[R]]) -> AioStream[R]:
        """See :meth:`vflens.protocol.link.Link.stream`."""
        return AioStream(RPCS[act], self.name, self.address, self.limits, self.metadata)

    def close(self) -> None:
        """End the streams and the channel."""
        for stream in self._streams.values():
            stream.end()
        self._channel.close()

    def _method(self, rpc: Rpc) -> Any:
        if rpc.path not in self._unary:
            self._unary[rpc.path] = self._channel.unary_unary(rpc.path, rpc.request.SerializeToString)
        return self._unary[rpc.path]

    def _closed(self) -> UnavailableError:
        """What a ``ValueError`` of the library means."""
        return UnavailableError(f"the link to {self.name!r} is closed: open another")

    def _stream(self, rpc: Rpc) -> _Stream:
        with self._lock:
            stream = self._streams.get(rpc.path)
            if stream is None or stream.broken:
                stream = self._streams[rpc.path] = _Stream(rpc, self)
            return stream


class _UnaryReply(Generic[R]):
    """The reply of a unary call in flight."""

    def __init__(self, call: Any, rpc: Rpc, link: GrpcLink) -> None:
        self._call, self._rpc, self._link = call, rpc, link

    def result(self, timeout: float | None = None) -> R:
        """Wait for the reply."""
        try:
            data = self._call.result(timeout)
        except grpc.RpcError as error:
            raise from_rpc(error, self._link.name, self._link.limits.call_seconds) from None
        except (grpc.FutureTimeoutError, grpc.FutureCancelledError):
            raise UnavailableError(
                f"party {self._link.name!r} did not answer in time, or the link was closed: look at its log"
            ) from None
        reply: R = self._rpc.read_reply(data, self._link.name)
        return reply


class _Stream:
    """A persistent stream, for any number of threads; replies come in the order of the requests."""

    def __init__(self, rpc: Rpc, link: GrpcLink) -> None:
        self.rpc = rpc
        self.broken = False
        self._link = link
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = link.open(rpc, iter(self._requests.get, None))
        self._due: deque[weakref.ref[_StreamReply[Any]]] = deque()  # what nobody waits for is passed over
        self._sending, self._reading = threading.Lock(), threading.Lock()

    def send(self, message: Any) -> _StreamReply[Any]:
        """Queue ``message``; its reply is read when asked for."""
        reply: _StreamReply[Any] = _StreamReply(self)
        with self._sending:
            self._due.append(weakref.ref(reply))
            self._requests.put(message)
        return reply

    def read(self, awaited: _StreamReply[Any], seconds: float) -> None:
        """Read replies until ``awaited`` has its own.

        Raises:
            UnavailableError: it did not come within ``seconds``, or the stream broke.
        """
        with self._reading:
            if awaited.data is None:  # else another thread read it meanwhile
                self._read(awaited, seconds)

    def _read(self, awaited: _StreamReply[Any], seconds: float) -> None:
        overdue = WATCHDOG.watch(self._call, seconds)
        try:
            while awaited.data is None:
                data, due = next(self._call), self._due.popleft()()
                if due is not None:
                    due.data = data
        except StopIteration:
            self.broken = True
            raise UnavailableError(
                f"party {self._link.name!r} ended the stream: it stopped; look at its log"
            ) from None
        except grpc.RpcError as error:
            self.broken = True
            if overdue.expired:
                raise UnavailableError(
                    f"party {self._link.name!r} did not answer a step within {seconds:g} s: raise "
                    "limits.step_seconds or look at its log"
                ) from None
            raise from_rpc(error, self._link.name, seconds) from None
        finally:
            WATCHDOG.release(overdue)

    def end(self) -> None:
        """Close the stream from this side."""
        self._requests.put(None)
        self._call.cancel()


class _StreamReply(Generic[R]):
    """The reply to one streamed request."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self.data: bytes | None = None

    def result(self, timeout: float | None = None) -> R:
        """Read the stream up to this reply."""
        self._stream.read(self, self._stream._link.limits.step_seconds if timeout is None else timeout)
        reply: R = self._stream.rpc.read_reply(self.data or b"", self._stream._link.name)
        return reply


class _Overdue:
    """A stream that must have answered by ``deadline``."""

    __slots__ = ("call", "deadline", "expired")

    def __init__(self, call: Any, deadline: float) -> None:
        self.call, self.deadline, self.expired = call, deadline, False


class _Watchdog:
    """Cancels overdue streams: streams have no deadline per message. Looks five times a second."""

    def __init__(self) -> None:
        self._watched: set[_Overdue] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def watch(self, call: Any, seconds: float) -> _Overdue:
        """Cancel ``call`` in ``seconds`` unless released before."""
        watched = _Overdue(call, time.monotonic() + seconds)
        with self._lock:
            self._watched.add(watched)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stream watchdog", daemon=True)
                self._thread.start()
        return watched

    def release(self, watched: _Overdue) -> None:
        """It answered."""
        with self._lock:
            self._watched.discard(watched)

    def _run(self) -> None:
        while True:
            time.sleep(0.2)
            now = time.monotonic()
            with self._lock:  # whoever answered in time is released before it could be cancelled
                for watched in [w for w in self._watched if w.deadline < now]:
                    self._watched.discard(watched)
                    watched.expired = True
                    watched.call.cancel()


WATCHDOG = _Watchdog()
