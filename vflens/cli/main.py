"""``vflens``: the commands, their flags and their help. Commands do their slow imports themselves."""

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
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

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
    scoreboard,
    secrets,
    start,
    watch,
)
from vflens.cli.decide import compare, dpia, epsilon
from vflens.cli.output import note
from vflens.cli.usage import is_usage, sentence
from vflens.errors import (
    INTERRUPTED,
    ConfigError,
    StorageError,
    UnavailableError,
    VflensError,
    exit_codes,
    shortened,
)
from vflens.wire.process import configure_process

_MOST = 4_000  # characters of a message, which may repeat a huge cell of a file
_INTERRUPTION = "interrupted: files written so far are kept"


class _InOrder(TyperGroup):
    """The commands in the order of ``_PANELS``, which Typer would break: it lists groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, panel by panel."""
        return [name for commands in _PANELS.values() for name in commands]


app = typer.Typer(
    name="vflens",
    cls=_InOrder,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="What each party of a vertical or horizontal federation can reconstruct from what it receives, and "
    "what a defence buys and costs.",
    epilog="Start with: vflens demo. Exit codes: "
    f"{', '.join(f'{code} {word}' for code, word in exit_codes().items())}.",
)
#: Panel of the help → name → command or group, in the order of use.
_PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Begin": {
        "demo": start.demo,
        "examples": start.examples,
        "new": start.new,
    },
    "Before a run": {
        "audit": audit.audit,
        "release": release.release,
        "epsilon": epsilon.epsilon,
        "datasets": datasets.app,
        "party": start.party,
        "secrets": secrets.app,
        "certs": certs.app,
        "check": federation.check,
    },
    "Run": {
        "run": federation.run,
        "serve": federation.serve,
        "status": federation.status,
        "predict": federation.predict,
        "resume": federation.resume,
    },
    "Look at runs": {
        "watch": watch.watch,
        "report": evidence.report,
        "ledger": evidence.ledger,
        "compare": compare.compare,
        "dpia": dpia.dpia,
        "attack": evidence.attack,
        "score": evidence.score,
        "verify-log": evidence.verify_log,
        "import": evidence.import_recording,
    },
    "Papers and plug-ins": {
        "reproduce": reproduce.reproduce,
        "sweep": reproduce.sweep,
        "scoreboard": scoreboard.scoreboard,
        "attacks": plugins.attacks,
        "defenses": plugins.defenses,
        "models": plugins.models,
        "version": plugins.version,
    },
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)
app.command("audit-log", hidden=True)(evidence.verify_log)  # its name before 0.2.0
app.command("import-flower", hidden=True)(evidence.import_recording)  # the same
_COMMANDS = typer.main.get_command(app)  # made once: parties are forked from a process that has loaded it

if _loading:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
        sys.exit(_COMMANDS(standalone_mode=False))
    except SystemExit as end:
        if end.code == INTERRUPTED:  # Typer ends so on Ctrl-C, silently
            note(_INTERRUPTION)
        raise
    except (Exception, KeyboardInterrupt) as error:
        reported = getattr(error, "exit_code", None) == INTERRUPTED  # the handler already reported it
        if not reported and _is_interruption(error):
            note(_INTERRUPTION)
            sys.exit(INTERRUPTED)
        words, code = _message(error)
        if not words:
            sys.exit(code)
        _fail(words, code)


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
        case TimeoutError():  # Python counts it as an OSError
            late = "nobody answered in time: look at the other parties' logs, or raise the limits"
            return late, UnavailableError.exit_code
        case _ if is_usage(error):
            return sentence(error), ConfigError.exit_code
        case OSError():
            what = f"{error.filename or 'a file'}: {error.strerror or 'it cannot be read or written'}"
            return f"{what}: free space, or choose another file or folder", StorageError.exit_code
        case MemoryError():
            return "out of memory: ask for fewer rows or columns", VflensError.exit_code
    named = f"unexpected {type(error).__name__}: {error}"
    return f"{named}: please report it, with VFLENS_TRACEBACK=1 set", VflensError.exit_code


def _flushed(code: int) -> int:
    """The exit code after flushing all output; a failed flush has its own code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        note(f"error: {error.strerror}: the output is lost")
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
