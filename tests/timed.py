"""``python tests/timed.py COMMAND…``: say how long the suite takes on this machine, then run it by COMMAND.

The time of the last run that passed stands in a file that git ignores. Before the first one, how long VFLens
takes to load is measured.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

RECORD = Path(__file__).parents[1] / ".pytest_cache/suite_seconds"
#: Processor seconds of the suite, in those of loading VFLens, and of two cores the share that it keeps busy.
LOADS, BUSY = 670, 1.7
_LOAD = "import vflens.services.process, vflens.experiments.run.run"


def main(command: Sequence[str], record: Path = RECORD) -> int:
    """The exit code of ``command``, which gets a Ctrl-C itself."""
    print(expected(record), flush=True)
    began = time.monotonic()
    process = subprocess.Popen(command)
    while (code := _ended(process)) is None:
        pass
    if code == 0:
        record.parent.mkdir(exist_ok=True)
        record.write_text(f"{time.monotonic() - began:.0f}\n", encoding="utf-8")
    return code


def expected(record: Path) -> str:
    """How long it takes, and how that is known."""
    try:
        seconds, known = float(record.read_text(encoding="utf-8")), "as the last run that passed"
    except (OSError, ValueError):
        seconds, known = LOADS * _load_seconds() / BUSY, "judged by how long VFLens takes to load"
    return f"about {max(1, round(seconds / 60))} minutes on this machine, {known}"


def _load_seconds() -> float:
    """Processor seconds of loading VFLens, files in memory."""
    used = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", _LOAD], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(used)


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait()
    except KeyboardInterrupt:
        return None  # its summary is still to come


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
