"""``vflens``: the commands, their flags and their help. Slow imports happen inside the commands that need
them.
"""

from __future__ import annotations

import os
import signal

# A Ctrl-C while modules load ends the process without a word: there is nothing to keep, and a traceback says
# nothing.
_loading = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _loading:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# One numeric thread per process, before NumPy loads: sums then have one order in every mode.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import contextlib
import sys
import traceback
from typing import NoReturn

import typer

from vflens.cli import audit, datasets, evidence, federation, plugins, release, reproduce, secrets
from vflens.cli.output import note
from vflens.errors import INTERRUPTED, StorageError, VflensError, exit_codes, shortened
from vflens.wire.process import configure_process

if _loading:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MOST = 4_000  # characters of a sentence, which may repeat a cell as long as a file
_INTERRUPTION = "interrupted: what was computed so far is kept"

app = typer.Typer(
    name="vflens",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="What each party of a vertical federation can reconstruct from what it receives, and what a defence "
    "buys and costs.",
    epilog="Start with: make demo. Exit codes: "
    f"{', '.join(f'{code} {word}' for code, word in exit_codes().items())}.",
)
app.add_typer(datasets.app, name="datasets")
app.add_typer(secrets.app, name="secrets")
for _command in (
    federation.serve,
    federation.run,
    federation.check,
    federation.predict,
    evidence.report,
    evidence.attack,
    evidence.score,
    evidence.compare,
    release.release,
    plugins.attacks,
    plugins.defenses,
    plugins.version,
    audit.audit,
    reproduce.reproduce,
    reproduce.sweep,
):
    app.command()(_command)


def main() -> NoReturn:
    """Run the command line as a process of its own.

    Where gRPC or Arrow was loaded the process leaves at once, without Python's teardown: under load gRPC's
    own part of it can hang for ever, and a C++ thread of either that was still alive could end the process
    there.
    """
    try:
        command_line()
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said: a second Ctrl-C has nothing to end
        if not sys.modules.keys().isdisjoint(("grpc", "pyarrow")):
            os._exit(_flushed(end.code if isinstance(end.code, int) else 0))
        raise
    sys.exit(0)


def command_line() -> None:
    """Run the command line; every error is one sentence and its class's exit code.

    What nobody foresaw is one sentence too; with VFLENS_TRACEBACK set, its traceback follows.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        configure_process()
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # so Typer ends on Ctrl-C, without a word
            note(_INTERRUPTION)
        raise
    except (Exception, KeyboardInterrupt) as error:
        told = getattr(error, "exit_code", None) == INTERRUPTED  # by who caught it, and knows what is kept
        if not told and _is_interruption(error):
            note(_INTERRUPTION)
            sys.exit(INTERRUPTED)
        _fail(*_said(error))


def _is_interruption(error: BaseException | None) -> bool:
    """Whether ``error`` is a Ctrl-C, or what Python made of one: while a class is made, or a module loads."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _said(error: BaseException) -> tuple[str, int]:
    """The sentence and the exit code of ``error``."""
    match error:
        case VflensError():
            return str(error), error.exit_code
        case OSError():
            return f"{error}: free space, or choose another file or folder", StorageError.exit_code
        case MemoryError():
            return f"out of memory ({error}): ask for fewer rows or columns", VflensError.exit_code
    named = f"unexpected {type(error).__name__}: {error}"
    return f"{named}: please report it, with VFLENS_TRACEBACK=1 set", VflensError.exit_code


def _flushed(code: int) -> int:
    """The exit code once everything printed has left; another where it could not."""
    try:
        sys.stdout.flush()
    except OSError as error:
        note(f"error: {error}: what was printed is lost")
        return code or StorageError.exit_code
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    return code


def _fail(sentence: str, code: int) -> NoReturn:
    note(f"error: {shortened(' '.join(sentence.split()), _MOST)}")
    if os.environ.get("VFLENS_TRACEBACK"):
        traceback.print_exc()
    sys.exit(code)


if __name__ == "__main__":
    main()
