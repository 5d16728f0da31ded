"""A process that loads once and forks parties: ``python -m … SOCKET,ENTRY,MODULE,…``.

It loads the modules, which start no thread, and waits. Each request on SOCKET is a line in JSON,
``{"arguments": […], "environment": {…}}``, with two descriptors: a child gets them as its input and its
output, and is a command ``vflens ARGUMENTS``: it calls ``ENTRY.main()``. The answers are lines too:
``{"started": PID}`` or ``{"refused": ERRNO}``, and ``{"ended": PID, "code": CODE}`` once a child has ended,
with the negative number of the signal that killed it. It ends when SOCKET closes.

It knows nothing of any party: what a child reads, draws and opens is the child's alone.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from vflens.wire.process import configure_process

_BYTES = 65_536
_ENDS = (signal.SIGCHLD,)
_LATEST_SECONDS = 0.5  # a child's end is told within it


def load(entry: str, modules: Sequence[str]) -> Any:
    """Load ``entry`` and ``modules``; objects so far are no garbage, so that children share their memory."""
    configure_process()  # before gRPC loads
    program = import_module(entry)
    for module in modules:
        try:
            import_module(module)
        except Exception:  # a party that needs it fails there, in its own words
            continue
    gc.collect()
    gc.freeze()
    return program


def answer(control: socket.socket, program: Any) -> None:
    """Fork a child for each request, until ``control`` closes."""

    def say(**message: int) -> None:
        control.sendall(json.dumps(message).encode() + b"\n")

    def reap(*_: object) -> None:
        while (ended := _ended()) is not None:
            say(ended=ended[0], code=ended[1])

    signal.signal(signal.SIGCHLD, reap)
    while request := _request(control):
        wanted, descriptors = request
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # a child's end is told after its start
        try:
            child = os.fork()
        except OSError as error:
            say(refused=error.errno or 0)
        else:
            if not child:
                control.close()
                _be(program, descriptors, **wanted)
            say(started=child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        for descriptor in descriptors:
            os.close(descriptor)


def _request(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next request and its descriptors; None at the end.

    A signal that comes just before a wait does not end it; its handler runs afterwards: hence short waits.
    """
    while not select.select([control], [], [], _LATEST_SECONDS)[0]:
        pass
    line, descriptors, _, _ = socket.recv_fds(control, _BYTES, 2)
    while line and not line.endswith(b"\n"):
        more = control.recv(_BYTES)
        line = line + more if more else b""
    return (json.loads(line), descriptors) if line else None


def _ended() -> tuple[int, int] | None:
    """The process and the exit code of a child that has ended."""
    try:
        child, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (child, os.waitstatus_to_exitcode(status)) if child else None


def _be(
    program: Any, descriptors: Sequence[int], arguments: list[str], environment: dict[str, str]
) -> NoReturn:
    """Be the command with ``arguments``, in a session of its own."""
    code: object = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        os.setsid()
        for descriptor, streams in zip(descriptors, ((0,), (1, 2)), strict=True):
            for stream in streams:
                os.dup2(descriptor, stream)
            os.close(descriptor)
        os.environ.update(environment)
        _draw_anew()
        sys.argv = ["vflens", *arguments]
        _show(sys.argv)
        program.main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _draw_anew() -> None:
    """Give the generators that libraries share a state of this process's own; Python's has one by itself."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


def _show(command: list[str]) -> None:
    """Let ``ps`` show ``command``, where Linux tells the place: as much as the last argument has room for."""
    try:
        facts = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        start, end = int(facts[45]), int(facts[46])  # arg_start and arg_end, fields 48 and 49
    except (OSError, ValueError, IndexError):
        return
    import ctypes

    room = end - start - 1
    title = os.fsencode(" ".join(command))[: room - 1].ljust(room, b"\0")
    ctypes.memmove(
        start, title + b"!", room + 1
    )  # Linux shows the text before a NUL if the last byte is none


if __name__ == "__main__":
    number, entry, *modules = sys.argv[1].split(",")
    with socket.socket(fileno=int(number)) as control:
        answer(control, load(entry, modules))
