"""``vflens``: the commands, their flags and their help. Commands do their slow imports themselves."""

from __future__ import annotations

import os
import signal

# A Ctrl-C while modules load ends the process silently: there is no result to keep, and no use for a
# traceback.
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

from vflens import failpoints
from vflens.cli import (
    audit,
    certs,
    datasets,
    evidence,
    federation,
    plugins,
    release,
    reproduce,
    secrets,
    watch,
)
from vflens.cli.output import note
from vflens.errors import INTERRUPTED, StorageError, VflensError, exit_codes, shortened
from vflens.wire.process import configure_process

if _loading:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MOST = 4_000  # characters of a message, which may repeat a huge cell of a file
_INTERRUPTION = "interrupted: what was computed so far is kept"

app = typer.Typer(
    name="vflens",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="What each party of a federation can reconstruct from what it receives, and what a defence "
    "buys and costs.",
    epilog="Start with: make demo. Exit codes: "
    f"{', '.join(f'{code} {word}' for code, word in exit_codes().items())}.",
)
app.add_typer(datasets.app, name="datasets")
app.add_typer(secrets.app, name="secrets")
app.add_typer(certs.app, name="certs")
for _command in (
    federation.serve,
    federation.run,
    federation.resume,
    federation.check,
    federation.predict,
    federation.status,
    watch.watch,
    evidence.report,
    evidence.ledger,
    evidence.attack,
    evidence.score,
    evidence.import_flower,
    evidence.compare,
    evidence.audit_log,
    release.release,
    plugins.attacks,
    plugins.defenses,
    plugins.models,
    plugins.version,
    audit.audit,
    reproduce.reproduce,
    reproduce.sweep,
):
    app.command()(_command)


def main() -> NoReturn:
    """Run the command line in its own process.

    With gRPC or Arrow loaded the process exits at once, without Python's teardown: there gRPC can hang for
    ever under load, and a live C++ thread of either could crash the process.
    """
    try:
        command_line()
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all output is done: ignore a second Ctrl-C
        if not sys.modules.keys().isdisjoint(("grpc", "pyarrow")):
            os._exit(_flushed(end.code if isinstance(end.code, int) else 0))
        raise
    sys.exit(0)


def command_line() -> None:
    """Run the command line; every error is one sentence and its class's exit code.

    An unexpected error is one sentence too; with VFLENS_TRACEBACK set, its traceback follows.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        configure_process()
        failpoints.arm(os.environ.get("VFLENS_FAIL", ""))
        if failpoints.armed:
            note("VFLENS_FAIL is set: this process fails on purpose")
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # Typer ends so on Ctrl-C, silently
            note(_INTERRUPTION)
        raise
    except (Exception, KeyboardInterrupt) as error:
        reported = getattr(error, "exit_code", None) == INTERRUPTED  # the handler already reported it
        if not reported and _is_interruption(error):
            note(_INTERRUPTION)
            sys.exit(INTERRUPTED)
        _fail(*_message(error))


def _is_interruption(error: BaseException | None) -> bool:
    """Whether ``error`` is a Ctrl-C, or Python's wrapper of one from the creation of a class or an import."""
    if type(error).__name__ == "SchemaError":  # pydantic's compiled part names its cause in the text only
        return "KeyboardInterrupt" in str(error)
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _message(error: BaseException) -> tuple[str, int]:
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
    """The exit code after flushing all output; a failed flush has its own code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        note(f"error: {error}: the output is lost")
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
