"""Everything about gRPC connections in one place: addresses, sizes, keepalive, identity."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

import grpc as grpc  # noqa: PLC0414 - re-exported: the rest of the code takes it from here

from vflens.config import MIB, Limits, is_local
from vflens.errors import ConfigError
from vflens.wire import sockets

if TYPE_CHECKING:  # most parties of one machine need no certificates
    from vflens.wire.tls.counterpart import Counterpart
    from vflens.wire.tls.identity import Identity

C = TypeVar("C")

PARTY_KEY, TOKEN_KEY, INCARNATION_KEY = "vflens-party", "vflens-token", "vflens-incarnation"
CALLEE_KEY = "vflens-callee"  # of the parties at an address
_MOST_CONNECTIONS = 256  # of a server at a time: a process may have 1,024 files open
_MOST_STREAMS = 64  # calls on one connection, for each party that is served
_MOST_CALLS = 1_000  # the same of all callers at a time, those that wait for their refusal too
_HANDSHAKE_MS, _IDLE_MS = 10_000, 60_000


def options(limits: Limits) -> list[tuple[str, int]]:
    """Channel and server options: message size from the configuration, pings every 20 s on idle streams.

    A server treats pings more often than every five minutes as an attack unless its options allow them.
    """
    size = limits.message_mib * MIB
    return [
        ("grpc.max_send_message_length", size),
        ("grpc.max_receive_message_length", size),
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.so_reuseport", 0),
        ("grpc.enable_http_proxy", 0),
    ]


def new_server(workers: ThreadPoolExecutor, limits: Limits, parties: int = 1) -> grpc.Server:
    """A server of ``parties`` that ``workers`` answer for; strangers take no more of it than these bounds.

    A connection without HTTP/2 traffic in time is closed, an idle one too: its owner's next call
    opens another. Further connections are not accepted, further calls are refused.
    """
    bounds = [
        ("grpc.max_allowed_incoming_connections", _MOST_CONNECTIONS),
        ("grpc.max_concurrent_streams", _MOST_STREAMS * parties),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.max_connection_idle_ms", _IDLE_MS),
    ]
    return grpc.server(
        workers, options=[*options(limits), *bounds], maximum_concurrent_rpcs=_MOST_CALLS * parties
    )


def open_channel(address: str, limits: Limits, tls: Counterpart | None = None) -> grpc.Channel:
    """A channel to the party at ``address``, over ``tls`` if given; connecting happens on first use, with
    back-off of at most 2 s.
    """
    if tls is None:
        return grpc.insecure_channel(address, _calling(limits))
    return grpc.secure_channel(address, tls.credentials(), [*_calling(limits), *tls.options()])


def open_aio_channel(address: str, limits: Limits, tls: Counterpart | None = None) -> grpc.aio.Channel:
    """Do as :func:`open_channel`, for the running event loop; it connects at once whatever an earlier channel
    met at ``address``: the party may be back since.
    """
    chosen = [*_calling(limits), ("grpc.use_local_subchannel_pool", 1)]
    if tls is None:
        return grpc.aio.insecure_channel(address, chosen)
    return grpc.aio.secure_channel(address, tls.credentials(), [*chosen, *tls.options()])


def _calling(limits: Limits) -> list[tuple[str, int]]:
    """The options of every channel."""
    backoff = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2_000)]
    return [*options(limits), *backoff]


class Shared(Generic[C]):
    """The open channels by what they lead to, which all who ask for the same share."""

    def __init__(self) -> None:
        self._open: dict[Hashable, tuple[C, int]] = {}
        self._lock = threading.Lock()

    def take(self, key: Hashable, opened: Callable[[], C]) -> C:
        """The channel of ``key``, ``opened`` for the first."""
        with self._lock:
            channel, users = self._open.get(key) or (opened(), 0)
            self._open[key] = channel, users + 1
            return channel

    def leave(self, key: Hashable) -> C | None:
        """The channel of ``key``, to be closed, for the last who took it."""
        with self._lock:
            channel, users = self._open.pop(key)
            if users > 1:
                self._open[key] = channel, users - 1
                return None
            return channel


def listen(server: grpc.Server, address: str, identity: Identity | None = None) -> int:
    """Let ``server`` accept connections at ``address``, over mutual TLS if it has an ``identity``; the port.

    Raises:
        ConfigError: the address cannot be bound.
    """
    try:
        if identity is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, identity.server_credentials())
    except RuntimeError as error:
        raise ConfigError(
            f"address {address!r} cannot be bound: choose one of this machine that is free"
        ) from error


def check_address(address: str, *, insecure: bool) -> None:
    """Refuse what is not an address, and any but loopback without TLS unless ``insecure``.

    Raises:
        ConfigError: naming the address and the remedy.
    """
    if sockets.is_socket(address):
        sockets.check_path(address)
        return
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise ConfigError(f"address {address!r} is not host:port with a port from 1 to 65535, nor unix:PATH")
    if not insecure and not is_local(address):
        raise ConfigError(
            f"address {address!r} is not loopback and there is no TLS: add [tls] (vflens certs init), bind "
            "127.0.0.1, or set insecure = true on a private network"
        )


def check_port_free(address: str) -> None:
    """Refuse an address in use or unusable, and a Unix socket that another user could take.

    Raises:
        ConfigError: naming the address.
    """
    if sockets.is_socket(address):
        sockets.check_free(address)
        return
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise ConfigError(
                f"address {address!r} cannot be bound ({error.strerror}): choose another port, or stop who "
                "uses it"
            ) from error
