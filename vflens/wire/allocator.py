"""The process's allocator: it keeps freed memory for the next message, and returns it between stages.

Only glibc has these settings (``mallopt(3)``, ``malloc_trim(3)``); elsewhere they have no effect.
"""

from functools import cache
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


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
