"""Run folders that grow and vanish while they are read: what changed is read again, nothing is locked.

A file that cannot be read is a sentence on the page, and is tried again once it changes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from vflens.errors import VflensError
from vflens.experiments.results.folders import PartyRun, party_folders, read_party
from vflens.experiments.results.record import RecordedRun, joined
from vflens.experiments.watch.events import Events, sentence
from vflens.experiments.watch.progress import Eta, PartyProgress, progress
from vflens.recorded.crossings import Logs

_RESULTS = ("config.toml", "federation.json", "status.json", "metrics.parquet", "pictures.npz")
_GROWING = ("state.json", "events.jsonl", "transcript/index.jsonl")
_MOST_BYTES = 1 << 22  # of an index at one reading, which takes about 200 ms
_Stamp: TypeAlias = tuple[int, int, int] | None


class Followed:
    """One party's ``folder``: what was read of it last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.party: PartyRun | None = None
        self.problem = ""
        self.progress: PartyProgress | None = None
        self.events = Events(folder / "events.jsonl")
        self._logs, self._pace = Logs(folder, _MOST_BYTES), Eta()
        self._results: list[_Stamp] = []
        self._growing: list[_Stamp] = []

    @property
    def running(self) -> bool:
        """Whether the party's run goes on."""
        return self.progress is not None and self.progress.state == "running"

    def refresh(self) -> None:
        """Read the files that changed."""
        results = [_stamp(self.folder / name) for name in _RESULTS]
        growing = [_stamp(self.folder / name) for name in _GROWING]
        if results != self._results:
            self._results, self.party, self.problem = results, None, ""
            try:
                self.party = read_party(self.folder, self._logs)
            except (VflensError, OSError) as error:
                self.problem = sentence(str(error))
        elif growing == self._growing:
            return
        self._growing = growing
        self.events.refresh()
        self.progress = progress(self.party, self._pace, self.events.alarms) if self.party else None


class Folders:
    """The runs in the folders ``given``, as of the last :meth:`refresh`."""

    def __init__(self, given: Sequence[Path]) -> None:
        self.runs: tuple[RecordedRun, ...] = ()
        self.problems: list[str] = []
        self._given = given
        self._followed: dict[Path, Followed] = {}

    def __getitem__(self, party: PartyRun) -> Followed:
        """The folder of ``party``."""
        return self._followed[party.folder]

    def refresh(self) -> None:
        """Read what changed; ``problems`` says, a sentence each, what cannot be read."""
        self.problems = []
        found = dict.fromkeys(folder for given in self._given for folder in self._found(given))
        self._followed = {folder: self._followed.get(folder) or Followed(folder) for folder in found}
        for followed in self._followed.values():
            followed.refresh()
        self.problems += [f.problem for f in self._followed.values() if f.problem]
        self._join([f.party for f in self._followed.values() if f.party])

    def _found(self, given: Path) -> list[Path]:
        try:
            return party_folders([given])
        except (VflensError, OSError) as error:
            self.problems.append(sentence(str(error)))
            return []

    def _join(self, parties: Sequence[PartyRun]) -> None:
        """The runs of ``parties``; one whose parties are as before stays, with what was computed of it."""
        before = {run.parties: run for run in self.runs}
        try:
            self.runs = tuple(before.get(run.parties, run) for run in joined(parties))
        except VflensError as error:
            self.runs, self.problems = (), [*self.problems, sentence(str(error))]


def _stamp(file: Path) -> _Stamp:
    """What changes with the contents of ``file``; None without it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
