"""gRPC's health service, and who asks it; a container does so with ``python -m vflens.services.healthcheck
ADDRESS``.
"""

from __future__ import annotations

import sys
from typing import Any

from grpc_health.v1 import health_pb2, health_pb2_grpc

from vflens.config import Limits
from vflens.wire.channel import grpc, open_channel

_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class HealthServicer(grpc.GenericRpcHandler):
    """Answers Check: whoever runs serves.

    It asks for no token, so it must not wait: as a stream it answers before the request has arrived. The
    library's own servicer keeps a thread for every caller who opens a check and never sends it.
    """

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of Check; None for anything else."""
        if handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.stream_stream_rpc_method_handler(
            lambda requests, context: iter((_SERVING,)),
            None,
            health_pb2.HealthCheckResponse.SerializeToString,
        )


def serves(address: str, limits: Limits, seconds: float) -> bool:
    """Whether somebody at ``address`` answers within ``seconds`` that it serves."""
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
    sys.exit(0 if serves(sys.argv[1], Limits(), 2.0) else 1)
