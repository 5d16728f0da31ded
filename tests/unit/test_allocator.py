"""Freed memory goes back to the system when it is to."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Frees 64 MiB under one block that stays; prints the MiB resident before, with what is freed kept, and given
#: back.
SCRIPT = """
from vflens.wire.allocator import give_back, keep_large_blocks
keep_large_blocks()
def resident():
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))
before = resident()
blocks = [bytes([i]) * 2**20 for i in range(64)]
last = bytes([1]) * 2**20
del blocks
kept = resident()
give_back()
print(before, kept, resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator is measured")
def test_what_is_freed_is_kept_and_then_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, kept, after = map(float, done.stdout.split())
    assert kept > before + 60
    assert after < before + 10
