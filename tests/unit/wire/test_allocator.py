"""Settings of the process: the allocator, gRPC's environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from vflens.wire.process import configure_process

#: Frees 64 MiB under one block that stays; prints the MiB resident before, with what is freed kept, and given
#: back.
SCRIPT = """
from vflens.wire.process import give_back, keep_large_blocks
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


IMPORTS = """
import os
before = dict(os.environ)
import vflens.services.process, vflens.experiments.run.check, vflens.wire.grpc_link
assert os.environ == before, set(os.environ.items()) ^ set(before.items())
"""


def test_an_import_changes_no_setting_of_the_process() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)


def test_settings_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPC_VERBOSITY", "DEBUG")
    monkeypatch.delenv("GRPC_EXPERIMENTS", raising=False)
    configure_process()
    assert os.environ["GRPC_VERBOSITY"] == "DEBUG"
    assert "-event_engine_client" in os.environ["GRPC_EXPERIMENTS"]
