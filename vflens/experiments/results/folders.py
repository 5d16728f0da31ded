"""Run folders as data: the files of each party in ``runs/RUN/PARTY/``, and the parties of one run.

An owner has only its own folders, and an interrupted party leaves only some of its files. So every file may
be absent. An unreadable file is refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, NonNegativeInt, TypeAdapter

from vflens.config.reading import toml
from vflens.errors import DataError, PluginError
from vflens.experiments.results.files import ConfigFacts, FederationFile, File, Status, pictures_in
from vflens.models.family import checked_model
from vflens.protocol.acts import checked_metrics_of
from vflens.protocol.roles import ROLES
from vflens.recorded.crossings import Crossing, Logs
from vflens.storage.files import UNREADABLE
from vflens.storage.json_file import in_words, json_object
from vflens.storage.metrics import Name, metric_rows, symmetric
from vflens.storage.regular import MOST_TOML, check_links, read_text
from vflens.storage.sent_heads import SentHeads, parsed
from vflens.types import Array, ColumnInfo, Document, Facts, PartyInfo, Role, Setting
from vflens.words import counted

M = TypeVar("M", bound=File)
_MARKS = ("config.toml", "federation.json", "status.json", "metrics.parquet")
_UNREADABLE = (*UNREADABLE, KeyError, PluginError)
_COUNTS = {Name.THEORY_ROWS, Name.THEORY_DISORDER}
_SQUARES = {name for name in Name if name.endswith("mse")}


@dataclass(frozen=True)
class Metric:
    """One row of ``metrics.parquet``; "", 0 and () mean: does not apply."""

    name: Annotated[Name, Field(alias="metric")]
    value: float
    attack: str
    target: str
    scored_set: Annotated[str, AfterValidator(checked_metrics_of)]
    column: str
    rows: NonNegativeInt
    step: NonNegativeInt
    detail: str = ""
    adversary: str = ""
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.name in _COUNTS and not (self.value >= 0 and self.value.is_integer()):
            raise ValueError(f"{self.name}: give a whole number (got {self.value})")
        if self.name in _SQUARES and any(figure < 0 for figure in (self.value, *self.values)):
            raise ValueError(f"{self.name}: give no negative number")

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
                f"{self.name} has figures of {counted(len(self.values), 'column')}, {self.target!r} has "
                f"{len(names)}: copy metrics.parquet and federation.json anew"
            )
        return dict(zip(names, self.values, strict=True))

    @property
    def matrix(self) -> Array:
        """The symmetric matrix (k, k) of a name that has one.

        Raises:
            DataError: ``values`` are no upper triangle, or not finite.
        """
        try:
            return symmetric(self.values)
        except ValueError as error:
            raise DataError(f"{self.name} has no matrix ({error}): copy metrics.parquet anew") from error


_METRICS = TypeAdapter(tuple[Metric, ...])


@dataclass(frozen=True, eq=False)
class PartyRun:
    """One party's folder. ``config`` is the whole file, secrets included:
    show it through :func:`vflens.experiments.results.compare.masked` only.
    """

    folder: Path
    config: Facts
    settings: ConfigFacts
    federation: FederationFile
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
    def shared(self) -> str:
        """How many rows of its own are shared, in words; "" of a party that shares none by their ids."""
        own, shared = self.federation.own_rows, self.federation.aligned_rows
        return f"{shared:,} of {counted(own, 'row', ',')} are shared" if own and shared else ""

    @property
    def has_transcript(self) -> bool:
        """Whether the folder holds the received messages."""
        return (self.folder / "transcript" / "index.jsonl").exists()

    @cached_property
    def takes_parts(self) -> bool:
        """Whether the party receives its own columns or rows of a gradient only.

        Raises:
            DataError: its federation's model has settings out of range, or its family is not installed.
        """
        if self.role and ROLES[self.role].alike:
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
            return pictures_in(path) if path.exists() else {}

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
class PartyRuns:
    """The folders of one run; targets come first, so that their figures win."""

    name: str
    parties: tuple[PartyRun, ...]

    def metrics(self, name: Name) -> Iterator[Metric]:
        """All rows called ``name``, those of the passive parties first."""
        return (m for p in self.parties for m in p.metrics if m.name == name)

    def value(self, name: Name) -> float | None:
        """The last figure, after restarts too, called ``name`` of the first that measured it, or None."""
        measured = ([m.value for m in p.metrics if m.name == name] for p in self.parties)
        return next((values[-1] for values in measured if values), None)

    @property
    def setting(self) -> Setting:
        """That of its parties' roles; vertical where no file names a role."""
        return next((ROLES[i.role].setting for i in self.infos().values()), Setting.VERTICAL)

    @cached_property
    def _infos(self) -> Mapping[str, PartyInfo]:
        described = {i.name: i for p in self.parties for i in p.federation.parties}
        held = {p.name: PartyInfo(p.name, p.role) for p in self.parties if p.role}
        return {name: info for name, info in {**held, **described}.items() if info.role in ROLES}

    def infos(self) -> Mapping[str, PartyInfo]:
        """The public description of every party that the folders know, by name."""
        return self._infos

    @property
    def n_classes(self) -> int:
        """The classes of the labels; 0 where no folder describes them, and of a number."""
        return max((info.n_classes for info in self.infos().values()), default=0)

    def columns_of(self, target: str) -> tuple[ColumnInfo, ...]:
        """The public columns of ``target``, of who has a numeric label that; () where nobody describes it."""
        info, label = self.infos().get(target), self.label_of(target)
        return (label,) if label else info.columns if info else ()

    def label_of(self, target: str) -> ColumnInfo | None:
        """The numeric label of ``target``; None where it has none."""
        info = self.infos().get(target)
        return None if info is None else info.label

    @property
    def alike(self) -> list[str]:
        """The names of its data parties, sorted, where all have one role: the clients."""
        return sorted(i.name for i in self.infos().values() if ROLES[i.role].alike)

    @property
    def attackers(self) -> list[str]:
        """The names of the parties, sorted, whose attacks may estimate columns during the run."""
        facts = {i.name: ROLES[i.role] for i in self.infos().values()}
        return sorted(name for name, own in facts.items() if "features" in own.estimates and not own.alike)

    def holds(self, role: Role) -> bool:
        """Whether there is a folder of a party with ``role``."""
        return any(p.role == role for p in self.parties)


def read_party(folder: Path, logs: Logs | None = None) -> PartyRun:
    """The folder of one party; ``logs`` continue an earlier reading of its logs.

    Raises:
        DataError: one of its files is damaged.
    """
    with _reading(folder, "a run"):
        check_links(folder)
    config = _config(folder / "config.toml")
    with _reading(folder / "config.toml", "a configuration"):
        settings = ConfigFacts.model_validate(config)
    known = settings.model_dump(include={"party", "role", "run", "lab"})
    federation = _checked(folder / "federation.json", FederationFile, known)
    status, metrics = _checked(folder / "status.json", Status), _metrics(folder / "metrics.parquet")
    return PartyRun(
        folder, config, settings, federation, status=status, metrics=metrics, logs=logs or Logs(folder)
    )


def setting_in(folder: Path) -> Setting:
    """The setting of the run in a party's ``folder``; vertical without ``federation.json``.

    Raises:
        DataError: the file is damaged.
    """
    return _checked(folder / "federation.json", FederationFile).setting


def party_folders(folders: Sequence[Path]) -> list[Path]:
    """The parties' folders that ``folders`` are or hold, at most two levels down.

    Raises:
        DataError: a folder is missing or holds no run.
    """
    return list(dict.fromkeys(p.resolve() for given in folders for p in _party_folders(given, depth=2)))


def runs_under(folder: Path) -> dict[Path, list[Path]]:
    """The parties' folders that ``folder`` is or holds, at most four levels down, by the folder of their run,
    sorted; {} without any, of no folder, and of one inside a party's.
    """
    found: dict[Path, list[Path]] = {}
    if folder.is_dir() and not any(map(_is_party, folder.resolve().parents)):
        for party in _descend(folder.resolve(), 4):
            found.setdefault(party.parent if _is_party(party) else party, []).append(party)
    return dict(sorted(found.items()))


def _is_party(folder: Path) -> bool:
    with suppress(OSError):  # it may not be opened
        return any((folder / mark).exists() for mark in _MARKS)
    return False


def _party_folders(folder: Path, *, depth: int) -> list[Path]:
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: give the folder that a party wrote, such as runs/RUN/PARTY")
    found = _descend(folder, depth)
    if not found:
        raise DataError(f"{folder} holds no run: a party's folder has at least one of {', '.join(_MARKS)}")
    return found


def _descend(folder: Path, depth: int) -> list[Path]:
    """Parties below ``folder``, behind no link; one that may not be opened is left to who reads it."""
    if _is_party(folder):
        return [folder]
    try:
        inner = sorted(f for f in folder.iterdir() if f.is_dir() and not f.is_symlink()) if depth else []
    except OSError:
        return [folder]
    return [party for f in inner for party in _descend(f, depth - 1)]


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of a damaged file into one sentence."""
    try:
        yield
    except _UNREADABLE as error:
        raise DataError(
            f"{path} cannot be read as {what} ({in_words(error)}): copy it anew from its party, or remove it"
        ) from error


def _config(path: Path) -> Document:
    with _reading(path, "TOML"):
        return toml(read_text(path, MOST_TOML)) if path.exists() else {}


def _checked(path: Path, model: type[M], known: Document | None = None) -> M:
    """What the JSON in ``path`` says, if it is there, and what is ``known`` without it."""
    with _reading(path, "JSON"):
        facts = json_object(read_text(path)) if path.exists() else {}
        return model.model_validate({**(known or {}), **facts})


def _metrics(path: Path) -> tuple[Metric, ...]:
    if not path.exists():
        return ()
    with _reading(path, "metrics"):
        rows = tuple(metric_rows(path, limited=True))
        if unknown := sorted({str(row["metric"]) for row in rows if "metric" in row} - set(Name)):
            raise ValueError(f"metric {unknown[0]!r} is not one of this version")
        return _METRICS.validate_python(rows)
