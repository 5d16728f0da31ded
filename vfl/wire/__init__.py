"""gRPC: channel options, codec, links. Imported before anything imports grpc: gRPC reads its settings once.

The event engine's own threads cost a third of the speed of small messages; fork support is not needed.
"""

import ctypes
import os

os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Arrow's own allocator keeps three times what a table's text takes; the process's reuses it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def _keep_large_blocks() -> None:
    """Let the allocator reuse blocks of up to 32 MiB: mapping a fresh one for every message is ten times its copy.

    Only glibc knows these two settings (``mallopt(3)``); elsewhere nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)
        mallopt(_M_TRIM_THRESHOLD, 128 * 1024 * 1024)


_keep_large_blocks()
