"""Run folders as data: the files of each party in ``runs/RUN/PARTY/``, and the parties of one run.

An owner has only its own folders, and an interrupted party leaves only some of its files. So every file may
be absent. An unreadable file is refused in one sentence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vflens.errors import ConfigError, DataError
from vflens.experiments.results.crossings import Crossing, Logs
from vflens.experiments.results.files import Federation, File, Settings, Status
from vflens.models.family import checked_model
from vflens.score.pictures import set_of
from vflens.storage.files import UNREADABLE, read_arrays
from vflens.storage.metrics import parquet_rows
from vflens.storage.regular import MOST_TOML, read_text
from vflens.storage.sent_heads import SentHeads, parsed
from vflens.types import Array, Document, Facts, PartyInfo, Role

_MARKS = ("config.toml", "federation.json", "status.json", "metrics.parquet")
_UNREADABLE = (*UNREADABLE, KeyError)


@dataclass(frozen=True)
class Metric:
    """One row of ``metrics.parquet``; "", 0 and () mean: does not apply."""

    metric: str
    value: float
    attack: str
    target: str
    scored_set: str
    column: str
    rows: int
    step: int
    adversary: str = ""
    values: tuple[float, ...] = ()

    def by_column(self, names: Sequence[str]) -> dict[str, float]:
        """Its figures by column: ``values`` of the target's columns ``names``, or its own; {} without names.

        Raises:
            DataError: the target has another number of columns.
        """
        if not self.values:
            return {self.column: self.value}
        if not names:  # its owner gave metrics.parquet alone
            return {}
        if len(names) != len(self.values):
            raise DataError(
                f"{self.metric} has figures of {len(self.values)} columns, {self.target!r} has {len(names)}: "
                "copy metrics.parquet and federation.json anew"
            )
        return dict(zip(names, self.values, strict=True))


@dataclass(frozen=True, eq=False)
class PartyRun:
    """One party's folder. ``config`` is the whole file, secrets included:
    show it through :func:`vflens.experiments.results.compare.masked` only.
    """

    folder: Path
    config: Facts
    settings: Settings
    federation: Federation
    status: Status
    metrics: tuple[Metric, ...]
    logs: Logs

    @property
    def name(self) -> str:
        """The party's name."""
        return self.federation.party or self.folder.name

    @property
    def role(self) -> Role | None:
        """The party's role, None without a file that names it."""
        return self.federation.role

    @property
    def has_transcript(self) -> bool:
        """Whether the folder holds the received messages."""
        return (self.folder / "transcript" / "index.jsonl").exists()

    @cached_property
    def takes_parts(self) -> bool:
        """Whether the party receives its own columns or rows of a gradient only; checking a model takes
        milliseconds.

        Raises:
            DataError: its federation's model has settings out of range.
            PluginError: its family is not installed.
        """
        if self.role is Role.CLIENT:
            return True
        model = self.federation.model
        with _reading(self.folder / "federation.json", "a federation"):
            return self.role is Role.PASSIVE and model is not None and checked_model(model).concatenates

    def received_heads(self) -> dict[str, SentHeads]:
        """Party → what it sent to this one; {} without any.

        Raises:
            DataError: the file is damaged.
        """
        path = self.folder / "heads.json"
        with _reading(path, "heads"):
            return parsed(read_text(path)) if path.exists() else {}

    def pictures(self) -> dict[str, dict[str, Array]]:
        """By the name of a round, or "" of rows by number: ``rows`` (m,), ``original`` and ``estimate:NAME``
        (m, d) of the party's columns; {} without pictures.

        Raises:
            DataError: the file is damaged, or its shapes do not fit one another.
        """
        path = self.folder / "pictures.npz"
        with _reading(path, "pictures"):
            return _pictures(path) if path.exists() else {}

    def crossings(self) -> tuple[Crossing, ...]:
        """Messages that the party received, by sender, phase and kind, in order of arrival.

        Raises:
            DataError: a line other than a torn last one is damaged.
            StorageError: the counts of messages that sampling left out are damaged.
        """
        with _reading(self.folder / "transcript" / "index.jsonl", "a transcript"):
            return self.logs.received(self.name)

    def releases(self) -> tuple[Crossing, ...]:
        """Messages that the party released, by phase and kind; its logs do not name the receivers.

        Raises:
            DataError: a file is damaged, other than by a torn last line.
        """
        with _reading(self.folder / "released", "a log of releases"):
            return self.logs.released(self.name)


@dataclass(frozen=True, eq=False)
class Run:
    """The folders of one run in one report; targets come first, so that their figures win."""

    name: str
    parties: tuple[PartyRun, ...]

    def metrics(self, metric: str) -> Iterator[Metric]:
        """All rows called ``metric``, those of the passive parties first."""
        return (m for p in self.parties for m in p.metrics if m.metric == metric)

    def value(self, metric: str) -> float | None:
        """The last figure called ``metric`` of the first party that measured it, or None.

        A restarted party adds to its earlier figures.
        """
        measured = ([m.value for m in p.metrics if m.metric == metric] for p in self.parties)
        return next((values[-1] for values in measured if values), None)

    def infos(self) -> dict[str, PartyInfo]:
        """The public description of every party that the folders know, by name."""
        described = {i.name: i for p in self.parties for i in p.federation.parties}
        held = {p.name: PartyInfo(p.name, p.role) for p in self.parties if p.role}
        return {**held, **described}

    def of_role(self, role: Role) -> list[str]:
        """The names of the parties with ``role``, sorted."""
        return sorted(i.name for i in self.infos().values() if i.role == role)

    def holds(self, role: Role) -> bool:
        """Whether there is a folder of a party with ``role``."""
        return any(p.role == role for p in self.parties)


def read_party(folder: Path, logs: Logs | None = None) -> PartyRun:
    """The folder of one party; ``logs`` continue an earlier reading of its logs.

    Raises:
        DataError: one of its files is damaged.
    """
    config = _config(folder / "config.toml")
    with _reading(folder / "config.toml", "a configuration"):
        settings = Settings.model_validate(config)
    known = settings.model_dump(include={"party", "role", "run", "lab"})
    federation = Federation.model_validate({**known, **_json(folder / "federation.json", Federation)})
    status = Status.model_validate(_json(folder / "status.json", Status))
    metrics = _metrics(folder / "metrics.parquet")
    return PartyRun(folder, config, settings, federation, status, metrics, logs or Logs(folder))


def read_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """The runs of the given folders: runs without defences first, else in order of appearance.

    Any other folder means the party folders inside it, at most two levels down.

    Raises:
        ConfigError: two folders claim to be the same party of the same run.
        DataError: a folder is missing or holds no run, or a file is damaged.
    """
    return joined(map(read_party, party_folders(folders)))


def party_folders(folders: Sequence[Path]) -> list[Path]:
    """The parties' folders that ``folders`` are or hold, as :func:`read_runs` finds them.

    Raises:
        DataError: a folder is missing or holds no run.
    """
    return list(dict.fromkeys(p.resolve() for given in folders for p in _party_folders(given, depth=2)))


def joined(parties: Iterable[PartyRun]) -> tuple[Run, ...]:
    """The runs of ``parties``, in the order of :func:`read_runs`.

    Raises:
        ConfigError: two are the same party of the same run.
    """
    found: dict[str, dict[str, PartyRun]] = {}
    for party in parties:
        run = found.setdefault(party.federation.run or party.folder.parent.name, {})
        if party.name in run:
            raise ConfigError(
                f"{run[party.name].folder} and {party.folder} hold the same party of the same run: give one "
                "of them"
            )
        run[party.name] = party
    runs = (Run(name, _targets_first(parties.values())) for name, parties in found.items())
    return tuple(sorted(runs, key=lambda run: any(p.settings.defenses for p in run.parties)))


def _targets_first(parties: Iterable[PartyRun]) -> tuple[PartyRun, ...]:
    return tuple(sorted(parties, key=lambda p: (p.role != Role.PASSIVE, p.role != Role.ACTIVE, p.name)))


def _party_folders(folder: Path, *, depth: int) -> list[Path]:
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: give the folder that a party wrote, such as runs/RUN/PARTY")
    found = _descend(folder, depth)
    if not found:
        raise DataError(f"{folder} holds no run: a party's folder has at least one of {', '.join(_MARKS)}")
    return found


def _descend(folder: Path, depth: int) -> list[Path]:
    if any((folder / mark).exists() for mark in _MARKS):
        return [folder]
    inner = sorted(f for f in folder.iterdir() if f.is_dir()) if depth else []
    return [party for f in inner for party in _descend(f, depth - 1)]


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of a damaged file into one sentence."""
    try:
        yield
    except _UNREADABLE as error:
        raise DataError(
            f"{path} cannot be read as {what} ({_reason(error)}): copy it anew from its party, or remove it"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
    return str(error).partition("\n")[0] or type(error).__name__


def _config(path: Path) -> Document:
    with _reading(path, "TOML"):
        return tomllib.loads(read_text(path, MOST_TOML)) if path.exists() else {}


def _json(path: Path, model: type[File]) -> Document:
    """The object in ``path``, checked against ``model``, without absent fields; {} without the file."""
    with _reading(path, "JSON"):
        text = read_text(path) if path.exists() else "{}"
        return model.model_validate_json(text).model_dump(exclude_unset=True)


def _metrics(path: Path) -> tuple[Metric, ...]:
    if not path.exists():
        return ()
    with _reading(path, "metrics"):
        return TypeAdapter(tuple[Metric, ...]).validate_python(tuple(parquet_rows(path, limited=True)))


def _pictures(path: Path) -> dict[str, dict[str, Array]]:
    sets: dict[str, dict[str, Array]] = {}
    for name, array in read_arrays(path).items():
        of = set_of(name)
        sets.setdefault(of, {})[name.removeprefix(f"{of}/") if of else name] = array
    for pictures in sets.values():
        shape = pictures["original"].shape
        wrong = [n for n, a in pictures.items() if a.shape != (shape if n != "rows" else shape[:1])]
        if len(shape) != 2 or wrong or "rows" not in pictures:
            raise ValueError(f"original {shape} does not fit {wrong or 'the missing rows'}")
    return sets
