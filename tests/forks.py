"""Processes of parties and commands, forked from one that has loaded VFLens: a start costs a twentieth of a
new Python's.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *("pytest", "torch", "pyarrow.parquet", "sklearn.datasets"),
        *("vflens.cli.main", "vflens.services.process", "vflens.experiments.run.run", "forks"),
    ]
)

Prepare = Callable[[], None]


def attended() -> None:
    """Signals as a terminal has them, even where the tests run in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def failing(fault: str) -> None:
    """The process has this fault (:mod:`vflens.failpoints`)."""
    attended()
    os.environ["VFLENS_FAIL"] = fault


def small_disk() -> None:
    """No file of this process grows beyond 200 kB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


class Fork:
    """``vflens`` with these arguments, in a process of its own, in ``folder`` or this process's.

    Its words go to ``output``, those of standard error to ``errors`` if it is given.
    """

    def __init__(
        self,
        arguments: list[str],
        output: Path,
        prepare: Prepare = attended,
        *,
        errors: Path | None = None,
        folder: Path | None = None,
    ) -> None:
        self._output = output
        told = (arguments, output, errors or output, folder or Path.cwd(), prepare)
        self._process = _FORKS.Process(target=_be, args=told, daemon=True)
        self._process.start()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative if a signal ended it."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("vflens", timeout or 0.0)
        return code

    def said(self) -> str:
        """What it has written to ``output``."""
        return self._output.read_text(encoding="utf-8") if self._output.exists() else ""

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def _be(arguments: list[str], output: Path, errors: Path, folder: Path, prepare: Prepare) -> None:
    os.chdir(folder)
    for stream, file in ((1, output), (2, errors)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name in [name for name in os.environ if name.startswith("VFLENS")]:
        del os.environ[name]
    prepare()
    sys.argv = ["vflens", *arguments]
    from vflens.cli.main import main

    main()
