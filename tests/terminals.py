"""Commands as a terminal starts them, forked from one process that has loaded VFLens: a start costs a
twentieth of a new Python's.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from vflens.services.forking.forks import Fork, Forks

VFLENS = "vflens.cli.main"
_LOADED = (
    *("pyarrow.parquet", "sklearn.datasets"),
    *(VFLENS, "vflens.services.process", "vflens.experiments.run.run"),
    "vflens.experiments.run.in_process",
)
_TOLD = "VFLENS_TERMINAL"
SMALL = 200_000  # bytes: a full disk holds no larger file


def start(
    arguments: list[str],
    output: Path,
    *,
    errors: Path | None = None,
    folder: Path | None = None,
    umask: int = 0o022,
    file_bytes: int | None = None,
    environment: Mapping[str, str] | None = None,
    entry: str = VFLENS,
) -> Fork:
    """``vflens`` with these arguments, or ``main()`` of another ``entry``, in a process of its own, in
    ``folder`` or this process's.

    Its words go to ``output``, those of standard error to ``errors`` if it is given. Of the variables of
    VFLens it has those in ``environment`` alone. No file of it grows beyond ``file_bytes``.
    """
    order = {
        "errors": errors and str(errors),
        "folder": str(folder or Path.cwd()),
        "umask": umask,
        "file_bytes": file_bytes,
        "environment": dict(environment or {}),
        "entry": entry,
    }
    with output.open("ab") as words:
        return forks(entry).start(arguments, words.fileno(), {_TOLD: json.dumps(order)})


@cache
def forks(entry: str) -> Forks:
    """One for all tests of this process, which has loaded ``entry`` before VFLens."""
    network = ("torch",) if entry == VFLENS else ()
    made = Forks(
        entry, *network, *_LOADED, entry="terminals", environment={"PYTHONPATH": str(Path(__file__).parent)}
    )
    atexit.register(made.__exit__)
    return made


def main() -> None:
    """Be the command; signals are as a terminal has them, even where the tests run in the background."""
    entry = VFLENS  # of a launcher's party
    if _TOLD in os.environ:
        entry = _as_ordered(json.loads(os.environ[_TOLD]))
    import_module(entry).main()


def _as_ordered(order: dict[str, Any]) -> str:
    """The module to be."""
    for name in [name for name in os.environ if name.startswith("VFLENS")]:
        del os.environ[name]
    os.environ.update(order["environment"])
    tempfile.tempdir = None  # it is asked for again
    os.chdir(order["folder"])
    os.umask(order["umask"])
    if order["errors"]:
        os.dup2(os.open(order["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    if order["file_bytes"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.path[:0] = filter(None, order["environment"].get("PYTHONPATH", "").split(os.pathsep))
    return str(order["entry"])
