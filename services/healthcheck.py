"""gRPC's health service and its client: containers run ``python -m vflens.services.healthcheck ADDRESS``."""

from __future__ import annotations

import sys
from typing import Any

from grpc_health.v1 import health_pb2, health_pb2_grpc

from vflens.config import Limits
from vflens.wire.channel import grpc, open_channel

_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class HealthServicer(grpc.GenericRpcHandler):
    """Answers Check: a running process serves.

    It needs no token, so it must not wait: as a stream it answers before the request arrives. The library's
    own servicer would keep a thread for every check without a request.
    """

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of Check; None for other methods."""
        if handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.stream_stream_rpc_method_handler(
            lambda requests, context: iter((_SERVING,)),
            None,
            health_pb2.HealthCheckResponse.SerializeToString,
        )


def serves(address: str, limits: Limits, seconds: float = 2.0) -> bool:
    """Whether a process at ``address`` answers within ``seconds`` that it serves."""
    with open_channel(address, limits) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=seconds
            )
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m vflens.services.healthcheck ADDRESS")
    sys.exit(0 if serves(sys.argv[1], Limits()) else 1)
