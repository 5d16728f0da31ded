"""Run folders that grow and vanish while they are read: what changed is read again, nothing is locked.

A file that cannot be read is a sentence on the page, and is tried again once it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from vflens.errors import VflensError
from vflens.experiments.results.folders import PartyRun, Run, joined, party_folders, read_party

_READ = ("config.toml", "federation.json", "status.json", "metrics.parquet", "pictures.npz")
_Stamp: TypeAlias = tuple[int, int, int]


class Folders:
    """The runs in the folders ``given``, as of the last :meth:`refresh`."""

    def __init__(self, given: Sequence[Path]) -> None:
        self.runs: tuple[Run, ...] = ()
        self.problems: list[str] = []
        self._given = given
        self._read: dict[Path, tuple[object, PartyRun | str]] = {}

    def refresh(self) -> None:
        """Read what changed; ``problems`` says, a sentence each, what cannot be read."""
        self.problems = []
        folders = [folder for given in self._given for folder in self._found(given)]
        self._read = {folder: self._current(folder) for folder in dict.fromkeys(folders)}
        parties = [party for _, party in self._read.values() if isinstance(party, PartyRun)]
        self.problems += [problem for _, problem in self._read.values() if isinstance(problem, str)]
        if set(parties) != {party for run in self.runs for party in run.parties}:
            self._join(parties)

    def _found(self, given: Path) -> list[Path]:
        try:
            return party_folders([given])
        except (VflensError, OSError) as error:
            self.problems.append(str(error))
            return []

    def _current(self, folder: Path) -> tuple[object, PartyRun | str]:
        """The party in ``folder``, or why it cannot be read."""
        stamps = [stamp(folder / name) for name in _READ]
        known = self._read.get(folder)
        if known is not None and known[0] == stamps:
            return known
        try:
            return stamps, read_party(folder)
        except (VflensError, OSError) as error:
            return stamps, str(error)

    def _join(self, parties: Sequence[PartyRun]) -> None:
        """The runs of ``parties``; one whose parties are as before stays, with what was computed of it."""
        before = {run.parties: run for run in self.runs}
        try:
            self.runs = tuple(before.get(run.parties, run) for run in joined(parties))
        except VflensError as error:
            self.runs, self.problems = (), [*self.problems, str(error)]


def stamp(file: Path) -> _Stamp | None:
    """What changes with the contents of ``file``; None without it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
