"""Instead of ``vflens``: a process with nothing loaded that says what a command or an import loads."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn


def main() -> NoReturn:
    """Import the one argument, or be the command with the arguments; a run ends where its parties start."""
    with suppress(SystemExit):
        if len(sys.argv) == 2 and "." in sys.argv[1]:
            import_module(sys.argv[1])
        else:
            _command()
    _end()


def _command() -> None:
    from vflens.cli.main import command_line

    if sys.argv[1] == "run":
        from vflens.experiments.run.processes import Processes

        Processes.__init__ = _end  # type: ignore[method-assign]
    command_line()


def _end(*_: object, **__: object) -> NoReturn:
    print("\n", *sorted(sys.modules), flush=True)
    os._exit(0)
