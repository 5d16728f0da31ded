"""gRPC's health service and its client: containers run ``python -m vflens.services.healthcheck CONFIG``."""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health_pb2, health_pb2_grpc

from vflens.config import Limits, PartyConfig, Peer, load_party
from vflens.errors import AccessError
from vflens.services.identity import counterpart
from vflens.wire.channel import grpc, open_channel
from vflens.wire.tls.probe import speaks_tls

if TYPE_CHECKING:
    from vflens.wire.tls.counterpart import Counterpart
    from vflens.wire.tls.identity import Identity

_MOVED_KEY = "vflens-moved"
_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class HealthServicer(grpc.GenericRpcHandler):
    """Answers Check: a running process serves.

    It needs no token, so it must not wait: as a stream it answers before the request arrives. The library's
    own servicer would keep a thread for every check without a request. With an ``identity`` it answers the
    parties of the same federation alone: an authority may have signed for others too. Without one it answers
    whoever connects. The answer says that a process listens, and whether ``moved``, the progress of its run,
    is what it was: in a digest under a key of this process, which says nothing else.
    """

    def __init__(self, identity: Identity | None = None, moved: Callable[[], object] = lambda: None) -> None:
        self._identity, self._moved, self._key = identity, moved, secrets.token_bytes()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of Check; None for other methods."""
        if handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.stream_stream_rpc_method_handler(
            lambda requests, context: self._answered(context),
            None,
            health_pb2.HealthCheckResponse.SerializeToString,
        )

    def _answered(self, context: grpc.ServicerContext) -> Iterator[health_pb2.HealthCheckResponse]:
        if self._identity is not None and not self._identity.meets_member(context):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "a party of another federation, or of none")
        moved = hashlib.blake2b(repr(self._moved()).encode(), key=self._key, digest_size=8).hexdigest()
        context.set_trailing_metadata(((_MOVED_KEY, moved),))
        return iter((_SERVING,))


def serves(address: str, limits: Limits, seconds: float = 2.0, tls: Counterpart | None = None) -> str:
    """How far the process at ``address`` has come, in a word that changes with it; "" unless it answers
    within ``seconds`` that it serves.
    """
    with open_channel(address, limits, tls) as channel:
        try:
            answer, call = health_pb2_grpc.HealthStub(channel).Check.with_call(
                health_pb2.HealthCheckRequest(), timeout=seconds
            )
        except grpc.RpcError:
            return ""
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        return ""
    return str(dict(call.trailing_metadata()).get(_MOVED_KEY, "serves"))  # earlier versions say no more


def lives(peer: Peer, config: PartyConfig, seconds: float = 2.0) -> str:
    """How far the run of ``peer`` has come; see :func:`serves`."""
    return serves(peer.address, config.limits, seconds, counterpart(peer.name, peer.role, config))


def came(peer: Peer, config: PartyConfig) -> bool:
    """Whether ``peer`` serves by now.

    Raises:
        AccessError: another party listens there, or one of the two does not trust the other: waiting does
            not help.
    """
    tls = counterpart(peer.name, peer.role, config)
    if tls is not None:
        return tls.reaches(peer.address) and bool(lives(peer, config))
    came = bool(lives(peer, config))
    if not came and speaks_tls(peer.address):
        raise AccessError(
            f"{peer.role} {peer.name!r} at {peer.address} answers in TLS, and this party has no [tls]: add "
            "it (vflens certs init)"
        )
    return came


def serves_itself(config: PartyConfig) -> bool:
    """Whether the party of ``config`` serves, asked from its own machine."""
    address = config.address.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
    return bool(serves(address, config.limits, tls=counterpart(config.party, config.role, config)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m vflens.services.healthcheck CONFIG")
    sys.exit(0 if serves_itself(load_party(Path(sys.argv[1]))) else 1)
