"""Ask gRPC's health service whether a party serves; a container does so with ``python -m services.healthcheck ADDRESS``."""

from __future__ import annotations

import sys

from grpc_health.v1 import health_pb2, health_pb2_grpc

from vfl.config import Limits
from vfl.wire.channel import grpc, open_channel


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
        sys.exit("usage: python -m services.healthcheck ADDRESS")
    sys.exit(0 if serves(sys.argv[1], Limits(), 2.0) else 1)
