"""The launcher: one local process per party; it waits until all have ended.

Many clients share as many processes as the machine has cores (:func:`shares`). All are forked from one that
has loaded VFLens (:class:`Forks`). The launcher holds every child's standard input. If the launcher ends in
any way, its children read the end of that input and stop. If one party fails, or the process that forks them,
the launcher stops the others.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Self

from vflens.errors import INTERRUPTED, StorageError, UnavailableError, VflensError, by_exit_code, first_cause
from vflens.models.family import ModelFamily
from vflens.protocol.roles import ROLES
from vflens.services.folder import state_of, write_status
from vflens.services.forking.forks import Fork, Forks
from vflens.services.forking.lifeline import LAUNCHED
from vflens.storage.json_file import json_object
from vflens.storage.private import owner_only
from vflens.storage.regular import opened, opened_to_write, read_bytes, read_text
from vflens.types import Document, Role
from vflens.words import counted

_PATIENCE_SECONDS = 15.0  # between the request to stop and the kill
_SILENT_SECONDS = 4.0  # of it, before the user sees the names of late parties
_MANY = 32  # of more, clients share processes
_END_SECONDS = 8.0  # after one party failed, for the others to notice it and end

ENTRY = "vflens.cli.main"  # module of a party's process
#: What every party loads, itself or at its first use.
LOADED = (
    "vflens.services.process", "vflens.cli.screen.progress", "grpc._channel", "grpc._server", "numpy.ma",
    "numpy.random", "pyarrow.compute", "pyarrow.parquet",
)  # fmt: skip

Event = Callable[[Document], None]


def prepared(models: Iterable[ModelFamily]) -> Forks:
    """The process that forks the parties of runs with these models."""
    return Forks(*LOADED, *sorted({m for model in models for m in model.prepared}), entry=ENTRY)


class Processes:
    """The party processes of one run; leaving the context ends them all.

    Args:
        configs: the configuration file of every party.
        roles: its role.
        forks: starts them.
        shared: the parties of each process, from :func:`shares`, as by default.
        restart: how often each is started again after it was killed or crashed.
        resume: go on with their unfinished runs.
    """

    def __init__(
        self,
        configs: Mapping[str, Path],
        roles: Mapping[str, str],
        forks: Forks,
        shared: Sequence[Sequence[str]] | None = None,
        *,
        restart: int = 0,
        resume: bool = False,
    ) -> None:
        self._configs, self._roles, self._forks = configs, roles, forks
        self._folders = {party: file.parent for party, file in configs.items()}
        groups = map(tuple, shares(roles, None) if shared is None else shared)
        self._hosted = {group[0]: group for group in groups}  # a process goes by its first party
        self._left = dict.fromkeys(self._hosted, restart)
        self._earlier = {party: _noted(folder) for party, folder in self._folders.items()}
        self._first: dict[str, str] = {}  # why a party was first started again
        self._children: dict[str, Fork] = {}
        try:
            for party in self._hosted:
                self._children[party] = self._begin(party, resume=resume)
        except OSError as error:
            self.stop()
            raise VflensError(
                f"the party processes cannot be started ({error.strerror}): free memory, processes or disk "
                "space"
            ) from error
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait(self, tell: Event) -> None:
        """Wait until every party has ended; call ``tell`` with each event that they log.

        Raises:
            VflensError: with class and sentence of the party that failed first.
        """
        followed = [_follow(folder / "events.jsonl") for folder in self._folders.values()]
        deadline = float("inf")
        while time.monotonic() < deadline:
            _pass_on(followed, tell)
            self._check_forks()
            codes = self._codes()  # asked once: a party may be killed at any moment
            again = self._start_again(codes, tell)
            if not again and len(codes) == len(self._children):
                break
            if any(code for party, code in codes.items() if party not in again):
                # The others notice and end with a reason; a party that does not gets a signal.
                deadline = min(deadline, time.monotonic() + _END_SECONDS)
            time.sleep(0.1)
        ended = self._codes()
        self.stop()
        _pass_on(followed, tell)
        self._note_killed()
        self._raise_failure(ended)

    def _begin(self, party: str, *, resume: bool) -> Fork:
        try:
            files = [self._configs[name] for name in self._hosted[party]]
            return _start(self._forks, self._roles[party], files, resume=resume)
        except UnavailableError:
            self._check_forks()  # names the folder to resume
            raise

    def _check_forks(self) -> None:
        """Raises UnavailableError: the process that forks the parties, and knows how they end, is gone."""
        if self._forks.lost:
            raise UnavailableError(
                f"the process that starts the parties {self._forks.lost}: {self._remedy()}"
            )

    def _start_again(self, codes: Mapping[str, int], tell: Event) -> set[str]:
        """Resume and return the parties that were killed or crashed, as often as allowed."""
        again = set[str]()
        for party, code in codes.items():
            if (code < 0 or code == VflensError.exit_code) and self._left[party]:
                reason = self._killed(party, code) if code < 0 else self._reason(party)
                self._left[party] -= 1
                self._first.setdefault(party, reason)
                for name in self._hosted[party]:
                    tell({"event": "resumed", "party": name, "reason": reason})
                self._children[party].close()
                self._children[party] = self._begin(party, resume=True)
                again.add(party)
        return again

    def _killed(self, party: str, code: int) -> str:
        return self._stopped(party, f"killed by {signal.Signals(-code).name}")

    def _stopped(self, party: str, how: str) -> str:
        return f"{self._who(party)} was {how}: {self._remedy()}"

    def _named(self, party: str) -> str:
        """Its name, of a process of several the first and the last."""
        return " to ".join(dict.fromkeys((party, self._hosted[party][-1])))

    def _who(self, party: str) -> str:
        count = len(self._hosted[party])
        shared = f"the process of {counted(count, 'client')}, {self._named(party)},"
        return f"party {party!r}" if count == 1 else shared

    def _remedy(self) -> str:
        """What goes on with the whole experiment: its scenarios lie beside each other."""
        experiment = next(iter(self._folders.values())).parents[1]
        return f"go on with vflens resume {shlex.quote(str(experiment))}"

    def stop(self) -> None:
        """Ask every process to end, then end it."""
        for child in self._running():
            child.send_signal(signal.SIGTERM)
        start = time.monotonic()
        self._wait_until(start + _SILENT_SECONDS)
        if late := [self._named(party) for party, child in self._children.items() if child.poll() is None]:
            seconds = _PATIENCE_SECONDS - _SILENT_SECONDS
            print(
                f"waiting up to {seconds:g} s for {', '.join(late)} to stop, then killing",
                file=sys.stderr,
                flush=True,
            )
        self._wait_until(start + _PATIENCE_SECONDS)
        for child in self._children.values():
            child.kill()
            with suppress(subprocess.TimeoutExpired):  # who knows of its end does not answer
                child.wait(_PATIENCE_SECONDS)
            child.close()

    def _wait_until(self, deadline: float) -> None:
        """Wait until every process has ended, or until ``deadline`` on the monotonic clock."""
        while self._running() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _running(self) -> list[Fork]:
        return [c for c in self._children.values() if c.poll() is None]

    def _codes(self) -> dict[str, int]:
        """Party → exit code, for ended processes."""
        return {p: code for p, c in self._children.items() if (code := c.poll()) is not None}

    def _note_killed(self) -> None:
        """Write the end of a killed party, which could not write it."""
        for party, code in self._codes().items():
            folders = [self._folders[name] for name in self._hosted[party]] if code < 0 else []
            for folder in folders:
                if state_of(folder) == "finished":
                    continue
                with suppress(StorageError):
                    write_status(folder, "failed", self._killed(party, code))

    def _reason(self, party: str) -> str:
        """Why the party failed: the reason in its status, else its last output; a status from before this
        launcher tells another failure.
        """
        hosts = len(self._hosted[party]) > 1  # then the reason is that of one of them
        noted = "" if hosts else _noted(self._folders[party])
        text = _last_error(self._folders[party] / "output.log")
        return (text or noted) if hosts or noted == self._earlier[party] else noted

    def _raise_failure(self, ended: Mapping[str, int]) -> None:
        failed = {p: code for p, code in ended.items() if code}
        if not failed:
            return
        party = first_cause(failed)
        code = failed[party]
        if party in self._first:
            raise UnavailableError(
                f"{self._who(party)} failed again after every restart; the first time: {self._first[party]}"
            )
        if code < 0:
            raise UnavailableError(self._killed(party, code))
        if code == INTERRUPTED:
            raise UnavailableError(self._stopped(party, "stopped by a signal"))
        raise by_exit_code(code)(
            self._reason(party)
            or f"{self._who(party)} ended with exit code {code}: look at {self._folders[party]}/output.log"
        )


def _pass_on(followed: Iterable[Iterator[list[Document]]], tell: Event) -> None:
    """Report the parties' new events, the earliest first."""
    events = (event for of_party in followed for event in next(of_party))
    for event in sorted(events, key=lambda event: str(event.get("timestamp"))):
        tell(event)


def shares(roles: Mapping[str, str], processes: int | None) -> list[list[str]]:
    """The parties of each process: of many clients as many in one as in another, all others alone.

    Args:
        roles: each party's.
        processes: for the clients; None: one each, of more than 32 as many as this process may use cores.
    """
    clients = [party for party, role in roles.items() if ROLES[Role(role)].alike]
    count = min(processes or (_cores() if len(clients) > _MANY else len(clients)), len(clients))
    ends = [len(clients) * i // count for i in range(count + 1)] if count else []
    alone = [[party] for party in roles if party not in clients]
    return [*alone, *(clients[start:end] for start, end in pairwise(ends))]


def _cores() -> int:
    """How many this process may use, where the system says so."""
    usable = getattr(os, "sched_getaffinity", lambda process: range(os.cpu_count() or 1))
    return len(usable(0))


def _start(forks: Forks, role: str, files: Sequence[Path], *, resume: bool) -> Fork:
    named = [word for file in files for word in ("--config", str(file))]
    command = ["serve", role, *named, *(["--resume"] if resume else [])]
    with owner_only(), opened_to_write(files[0].parent / "output.log", "ab") as output:
        return forks.start(command, output.fileno(), {LAUNCHED: "1"})


def _follow(file: Path) -> Iterator[list[Document]]:
    """Yield at every step the events appended to ``file`` since the last step."""
    offset, rest = 0, b""
    while True:
        data = b""
        with suppress(OSError):  # there is none before its first event
            if file.stat().st_size > offset:  # to open those of many clients takes ten times as long
                with opened(file) as log:
                    log.seek(offset)
                    data = log.read()
        offset += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield list(filter(None, map(_event, lines)))


def _event(line: bytes) -> Document:
    """The event in ``line``; {} if a full disk cut it."""
    try:
        return json_object(line)
    except ValueError:
        return {}


def _noted(folder: Path) -> str:
    """The reason in the party's status, "" without a readable one."""
    try:
        return str(json_object(read_text(folder / "status.json"))["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _last_error(log: Path) -> str:
    try:
        lines = read_bytes(log).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")), "")
