"""The fields that reports read in the files of a party's folder; every field may be absent."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from vflens.types import Document, PartyInfo, Role


class File(BaseModel):
    """A file of a party's folder, or a part of one; fields that no report reads are ignored."""

    model_config = ConfigDict(frozen=True)


class Data(File):
    """The part of a party's table ``[data]`` in reports."""

    caveat: str = ""


class Settings(File):
    """The part of ``config.toml`` in reports; plug-ins, disclosures and peers stay tables."""

    party: str = ""
    role: Role | None = None
    run: str = ""
    lab: bool = False
    insecure: bool = False
    malicious: bool = False
    defenses: tuple[Document, ...] = ()
    attacks: tuple[Document, ...] = ()
    disclose: tuple[Document, ...] = ()
    peers: tuple[Document, ...] = ()
    transcript: dict[str, int] = {}
    data: Data = Data()


class Federation(File):
    """``federation.json``: the party's view of its federation; ``clipped`` counts its own values."""

    run: str = ""
    party: str = ""
    role: Role | None = None
    in_process: bool = False
    lab: bool = False
    setting: str = ""
    aligned_rows: int = 0
    train_rows: int = 0
    predict_rows: int = 0
    clipped: int = 0
    parties: tuple[PartyInfo, ...] = ()
    versions: dict[str, str] = {}
    transcript_digest: str = ""
    model: Document | None = None
    training: Document = {}
    aggregator: str = "coordinator"
    horizontal: Document = {}


class LogHead(File):
    """The head of a log's hash chain: the link of the last of ``records`` records, in hexadecimal."""

    records: NonNegativeInt
    head: str = Field(pattern="^[0-9a-f]{64}$")


class Status(File):
    """``status.json``: the end of the run; an interrupted party may have none."""

    state: Literal["finished", "interrupted", "failed", "running"] = "interrupted"
    reason: str = "it left no status"
    heads: dict[str, LogHead] = {}
