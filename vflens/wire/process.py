"""Settings of a VFLens process for all its libraries; the command line calls it, no import does.

Its allocator keeps freed memory for the next message, and returns it between stages: only glibc has these
settings (``mallopt(3)``, ``malloc_trim(3)``), elsewhere they have no effect.
"""

import os
from functools import cache
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
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


@cache
def _libc() -> Any:
    import ctypes  # takes milliseconds, and a library that is imported loads nothing unasked

    return ctypes.CDLL(None)


def keep_large_blocks() -> None:
    """Reuse blocks of up to 32 MiB, whichever thread freed them: mapping a fresh one for every message takes
    longer than its copy (docs/performance.md, memory and messages).
    """
    mallopt = getattr(_libc(), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)
        mallopt(_M_TRIM_THRESHOLD, 128 * 1024 * 1024)
        mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Return freed memory to the system."""
    trim = getattr(_libc(), "malloc_trim", None)
    if trim is not None:
        trim(0)
