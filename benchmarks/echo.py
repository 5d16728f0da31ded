"""A server that answers calls, and messages on a stream, with the bytes it was sent; prints its address, ends
with its standard input.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from vflens.config import Limits
from vflens.wire.process import configure_process


def main() -> None:
    """Serve until the standard input ends."""
    configure_process()
    from vflens.wire.channel import grpc, options

    server = grpc.server(ThreadPoolExecutor(4), options=options(Limits()))
    echo: Any = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    stream: Any = grpc.stream_stream_rpc_method_handler(lambda requests, context: requests)
    methods = {"Echo": echo, "Stream": stream}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("benchmark.Echo", methods),))
    print(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    server.start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
