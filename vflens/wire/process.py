"""Settings of a VFLens process for all its libraries; the command line calls it, no import does."""

import os

from vflens.wire.allocator import keep_large_blocks

_SETTINGS = {
    # gRPC reads its settings once, when it is imported. The event engine's own threads slow small
    # messages down (docs/performance.md, memory and messages); fork support is not needed.
    "GRPC_EXPERIMENTS": "-event_engine_client,-event_engine_listener",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "GRPC_VERBOSITY": "NONE",
    # Arrow's own allocator keeps three times what a table's text takes; the process's reuses it.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of its own, which would be there at a fork
}


def configure_process() -> None:
    """Set environment and allocator of this process, before it imports grpc; what the user has set stays."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    keep_large_blocks()
