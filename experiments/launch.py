"""The launcher: one local process per party, watched until all have ended.

The launcher holds every child's standard input: when the launcher is gone, however it went, its children
see the end of it and stop. When one party fails, the others are told to stop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from services.process import LAUNCHED
from vfl.errors import UnavailableError, VflensError

_PATIENCE_SECONDS = 15.0  # between being told to stop and being killed

Event = Callable[[dict[str, Any]], None]


class Processes:
    """The party processes of one run; a context manager that leaves none behind.

    Args:
        configs: the configuration file of every party.
        roles: its role.
    """

    def __init__(self, configs: Mapping[str, Path], roles: Mapping[str, str]) -> None:
        self._folders = {party: file.parent for party, file in configs.items()}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for party, file in configs.items():
                self._children[party] = _start(roles[party], file)
        except OSError as error:
            self.stop()
            raise VflensError(
                f"the party processes cannot be started ({error.strerror}): free memory or processes"
            ) from error

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait(self, tell: Event) -> None:
        """Wait until every party has ended; ``tell`` is given what they log meanwhile.

        Raises:
            VflensError: of the class and with the sentence of the first party that failed.
        """
        followed = [_follow(folder / "events.jsonl") for folder in self._folders.values()]
        while running := [c for c in self._children.values() if c.poll() is None]:
            for events in followed:
                for event in next(events):
                    tell(event)
            if any(c.returncode for c in self._children.values() if c not in running):
                break
            time.sleep(0.1)
        self.stop()
        for events in followed:
            for event in next(events):
                tell(event)
        self._raise_failure()

    def stop(self) -> None:
        """Ask every process to end, then end it."""
        for child in self._children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for child in self._children.values():
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdin:
                child.stdin.close()

    def _raise_failure(self) -> None:
        """The party that failed by itself comes before those that it stopped."""
        failed = {p: c.returncode for p, c in self._children.items() if c.returncode not in (0, 130)}
        if not failed:
            return
        own = [p for p, code in failed.items() if code != UnavailableError.exit_code] or list(failed)
        party = own[0]
        cls = next((c for c in VflensError.__subclasses__() if c.exit_code == failed[party]), VflensError)
        raise cls(
            _reason(self._folders[party])
            or f"party {party!r} ended with exit code {failed[party]}: look at {self._folders[party]}/output.log"
        )


def _start(role: str, file: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, LAUNCHED: "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "cli.main", "serve", role, "--config", str(file)]
    with (file.parent / "output.log").open("ab") as output:
        # A session of its own: Ctrl-C reaches the launcher alone, which then ends its children in order.
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )


def _follow(file: Path) -> Iterator[list[dict[str, Any]]]:
    """At every step, the events appended to ``file`` since the last one."""
    offset, rest = 0, b""
    while True:
        if file.exists():
            with file.open("rb") as log:
                log.seek(offset)
                data = log.read()
            offset += len(data)
            *lines, rest = (rest + data).split(b"\n")
            yield [json.loads(line) for line in lines if line.startswith(b"{")]
        else:
            yield []


def _reason(folder: Path) -> str:
    try:
        return str(json.loads((folder / "status.json").read_text(encoding="utf-8"))["reason"])
    except (OSError, ValueError, KeyError):
        return ""
