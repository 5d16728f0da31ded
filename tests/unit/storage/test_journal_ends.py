"""The log of a process that was killed or could not write: what was appended is there."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vflens.errors import StorageError
from vflens.storage.journal import Journal, read

_KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from vflens.storage.journal import Journal
from vflens.types import Exchange, Phase, Point, Released

log = Journal(Path(sys.argv[1]))
for step in range(3):
    tensors = {"x": np.full((10, 9), float(step))}
    exchange = Exchange("r", Phase.TRAIN, 0, step)
    log.append(Released("p", exchange, Point.EMBEDDING, np.zeros(10, np.int32), tensors))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_lost_nothing_that_it_appended(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [e.tensor("x")[0, 0] for e in read(tmp_path)] == [0, 1, 2]


_FILE_SIZE_LIMIT = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from vflens.errors import StorageError
from vflens.storage.journal import Journal
from vflens.types import Exchange, Phase, Point, Released

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Journal(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
written = 0
try:
    for step in range(100):
        rows = np.arange(10, dtype=np.int32)
        tensors = {"x": np.full((10, 9), float(step))}
        log.append(Released("p", Exchange("r", Phase.TRAIN, 0, step), Point.EMBEDDING, rows, tensors))
        written += 1
except StorageError as error:
    print(written, error)
log.close()
"""


def test_a_real_write_error_keeps_what_was_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FILE_SIZE_LIMIT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    count, _, sentence = done.stdout.partition(" ")
    assert "cannot be written (File too large)" in sentence
    entries = list(read(tmp_path))
    assert len(entries) == int(count) > 10
    assert [e.tensor("x")[0, 0] for e in entries] == list(range(int(count)))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        Journal(tmp_path / "file" / "log")
