"""Thin gRPC servicers: decode, delegate, encode; health and graceful stop."""

import vflens.wire  # noqa: F401 - gRPC's settings, before grpc_health imports grpc
