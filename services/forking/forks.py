"""Commands forked from one process that has loaded VFLens: see :mod:`vflens.services.forking.forked`.

To load takes a second, three with torch; a fork takes milliseconds and shares what was loaded.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Self

from vflens.errors import INTERRUPTED, UnavailableError
from vflens.storage.private import owner_only

_LOAD_SECONDS = 300.0  # the most until the first child is forked, on a loaded machine
_END_SECONDS = 5.0  # between its last word and its end
_ROOM = 4096  # bytes of a command that ``ps`` shows of a child


class Forks:
    """A process that loads ``modules`` and then forks a child for each request; it starts to load at once.

    Its children have its environment, umask and folder, those of this process when it started it, and each
    a session of its own. No child outlives the context for long: its input ends with it.

    Args:
        modules: what it loads beside ``entry``; none may start a thread.
        entry: the module whose ``main()`` a child calls.
        environment: changes of this process's environment.
    """

    def __init__(
        self, *modules: str, entry: str = "vflens.cli.main", environment: Mapping[str, str] | None = None
    ) -> None:
        self.lost = ""  # how it ended, once it has ended unasked
        self._codes: dict[int, int] = {}  # of children that have ended
        self._answers: list[dict[str, int]] = []  # to requests
        self._rest = b""
        self._end = ExitStack()
        self._answered = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._end.callback(self._answered.close)
        self._control, theirs = socket.socketpair()
        self._end.callback(self._control.close)
        order = ",".join((str(theirs.fileno()), entry, *modules))
        command = [sys.executable, "-P", "-m", "vflens.services.forking.forked", order, _ROOM * " "]
        with theirs, owner_only():
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._answered,
                stderr=self._answered,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches this process alone
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it has nothing to lose
        self._process.wait()
        self._end.close()

    def start(
        self,
        arguments: Sequence[str],
        output: int,
        environment: Mapping[str, str] | None = None,
    ) -> "Fork":
        """Fork the command ``vflens`` with ``arguments``, whose words go to the descriptor ``output``.

        Raises:
            OSError: the system has no process left.
            UnavailableError: the process that forks is gone.
        """
        request = {"arguments": list(arguments), "environment": dict(environment or {})}
        ours, its = socket.socketpair()
        self._end.callback(ours.close)
        with its, suppress(BrokenPipeError, ConnectionResetError):  # hear() finds out why
            line = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(self._control, [line], [its.fileno(), output])
            self._control.sendall(line[sent:])
        answer = self._answer()
        if "refused" in answer:
            raise OSError(answer["refused"], os.strerror(answer["refused"]))
        return Fork(self, answer["started"], ours)

    def code_of(self, child: int) -> int | None:
        """The exit code of ``child``, None while it runs as far as is known."""
        self.hear(0.0)
        return self._codes.get(child)

    def hear(self, seconds: float) -> None:
        """Take up what the process says within ``seconds``, and how it ended if it did."""
        if self.lost:
            time.sleep(seconds)
            return
        if not select.select([self._control], [], [], max(0.0, seconds))[0]:
            return
        data = b""
        with suppress(ConnectionResetError):
            data = self._control.recv(65_536)
        if not data:
            self.lost = self._how_it_ended()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for message in map(json.loads, lines):
            if "ended" in message:
                self._codes[message["ended"]] = message["code"]
            else:
                self._codes.pop(message.get("started", 0), None)  # of an earlier child with this number
                self._answers.append(message)

    def _answer(self) -> dict[str, int]:
        deadline = time.monotonic() + _LOAD_SECONDS
        while not self._answers:
            if self.lost:
                raise UnavailableError(f"the process that starts the parties {self.lost}: start again")
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"the process that starts the parties did not answer within {_LOAD_SECONDS:g} s: start "
                    "again, on a machine with less other work"
                )
            self.hear(deadline - time.monotonic())
        return self._answers.pop()

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._process.kill()
        code = self._process.wait()
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        self._answered.seek(0)
        last = self._answered.read().decode(errors="replace").splitlines()[-1:]
        return f"ended with code {code} ({''.join(last)})"


class Fork:
    """A child of :class:`Forks`, which names it ``pid``; it notices when its input, ``lifeline``, closes."""

    def __init__(self, forks: Forks, pid: int, lifeline: socket.socket) -> None:
        self._forks, self.pid, self._lifeline = forks, pid, lifeline
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code once it has ended, negative if a signal ended it; INTERRUPTED if nobody knows."""
        if self.returncode is None:
            self.returncode = self._forks.code_of(self.pid)
        if self.returncode is None and self._forks.lost and self._is_gone():
            self.returncode = INTERRUPTED
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended.

        Raises:
            subprocess.TimeoutExpired: it runs on after ``timeout`` seconds.
        """
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(f"vflens (process {self.pid})", timeout or 0.0)
            self._forks.hear(min(left, 0.1))
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal; no effect once it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it by SIGKILL; no effect once it has ended."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Let its input end, and with it the child."""
        self._lifeline.close()

    def _is_gone(self) -> bool:
        with suppress(BlockingIOError):
            return not self._lifeline.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        return False
