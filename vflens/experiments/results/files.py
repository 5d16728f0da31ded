"""The fields that reports read in the files of a party's folder; every field may be absent."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, WrapValidator, model_validator

from vflens.config import Limits, MemberRole
from vflens.models.settings import Aggregator
from vflens.names import HEX_64_OR_NONE
from vflens.protocol.roles import ROLES
from vflens.score.pictures import set_of
from vflens.storage.files import read_arrays
from vflens.storage.heads import LogHead
from vflens.types import Array, ColumnInfo, Document, PartyInfo, Setting


class File(BaseModel):
    """A file of a party's folder, or a part of one; fields that no report reads are ignored."""

    model_config = ConfigDict(frozen=True)


class DataFacts(File):
    """The part of a party's table ``[data]`` in reports."""

    caveat: str = ""


class LimitFacts(File):
    """The part of a party's table ``[limits]`` in reports."""

    delta: float = Limits().delta
    epsilon: float | None = None


class ConfigFacts(File):
    """The part of ``config.toml`` in reports; plug-ins, disclosures and peers stay tables."""

    party: str = ""
    role: MemberRole | None = None
    run: str = ""
    lab: bool = False
    insecure: bool = False
    malicious: bool = False
    defenses: tuple[Document, ...] = ()
    attacks: tuple[Document, ...] = ()
    disclose: tuple[Document, ...] = ()
    peers: tuple[Document, ...] = ()
    transcript: dict[str, int] = {}
    data: DataFacts = DataFacts()
    limits: LimitFacts = LimitFacts()


class DroppedFacts(File):
    """The ``lost`` of all ``rows`` of a party's own file, by column the gaps for which they were dropped."""

    rows: NonNegativeInt = 0
    lost: NonNegativeInt = 0
    gaps: dict[str, NonNegativeInt] = {}


class TableFacts(File):
    """The party's own ``file`` by its name, and its digest as the run read it; "" of a folder."""

    file: str = ""
    sha256: str = Field("", pattern=HEX_64_OR_NONE)


_latest: list[tuple[object, tuple[PartyInfo, ...]]] = []


def _described(parties: object, checked: Callable[[object], tuple[PartyInfo, ...]]) -> tuple[PartyInfo, ...]:
    """``parties`` of a file, which has columns that clients have in common once.

    All parties of a run describe the same ones, so the latest stay: 200 times 200 take seconds.
    """
    if _latest and _latest[0][0] == parties:
        return _latest[0][1]
    columns = tuple[ColumnInfo, ...]()
    found = []
    for party in checked(parties):
        found.append(party.in_full(columns))
        columns = found[-1].columns
    _latest[:] = [(parties, tuple(found))]
    return tuple(found)


class FederationFile(File):
    """``federation.json``: the party's view of its federation; ``clipped`` counts its own values."""

    run: str = ""
    party: str = ""
    role: MemberRole | None = None
    in_process: bool = False
    lab: bool = False
    setting: Setting = Setting.VERTICAL
    aligned_rows: NonNegativeInt = 0
    train_rows: NonNegativeInt = 0
    predict_rows: NonNegativeInt = 0
    clipped: NonNegativeInt = 0
    own_rows: NonNegativeInt = 0
    dropped: DroppedFacts = DroppedFacts()
    table: TableFacts = TableFacts()
    parties: Annotated[tuple[PartyInfo, ...], WrapValidator(_described)] = ()
    versions: dict[str, str] = {}
    transcript_digest: str = ""
    model: Document | None = None
    training: Document = {}
    aggregator: Aggregator = "coordinator"
    horizontal: Document = {}
    nonce: str = Field("", pattern=HEX_64_OR_NONE)

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        """Refuse roles that contradict one another, or the setting."""
        members = [p for p in self.parties if p.role in ROLES]
        for p in members:
            if ROLES[p.role].setting is not self.setting:
                raise ValueError(f"setting: {self.setting} is none with the {p.role} {p.name!r} (parties)")
            if self.role and p.name == self.party and p.role is not self.role:
                raise ValueError(f"role: {p.name!r} is {self.role}, and {p.role} in parties")
        if self.role and members and ROLES[self.role].setting is not self.setting:
            raise ValueError(f"role: {self.role} is none of a {self.setting} federation (setting, parties)")
        holders = [p.name for p in members if ROLES[p.role].labelled and not ROLES[p.role].alike]
        if len(holders) > 1:
            raise ValueError(f"parties: {' and '.join(holders)} have the labels, one party has")
        return self


class Status(File):
    """``status.json``: the end of the run; an interrupted party may have none."""

    state: Literal["finished", "interrupted", "failed", "running"] = "interrupted"
    reason: str = "it left no status"
    heads: dict[str, LogHead] = {}


def pictures_in(path: Path) -> dict[str, dict[str, Array]]:
    """The arrays of ``pictures.npz`` by the name of their round, "" of rows by number.

    Raises:
        ValueError, StorageError: it is damaged, or its shapes do not fit one another.
    """
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
