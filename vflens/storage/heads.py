"""The heads of a party's logs."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, TypeAdapter

from vflens.errors import StorageError
from vflens.names import HEX_64
from vflens.storage import chain, release_digests
from vflens.storage.chain import LINK_BYTES, Head
from vflens.storage.journal import records
from vflens.words import counted

#: Log → its head: the received messages, the released predictions, the digests of the other releases.
Heads: TypeAlias = Mapping[str, Head]
_NONE = Head(0, chain.NONE)
LOGS = ("transcript", "released", "digests")


class LogHead(BaseModel):
    """The head of a log in a file: the link of the last of ``records`` records, in hexadecimal."""

    model_config = ConfigDict(frozen=True, strict=True)
    records: NonNegativeInt
    head: str = Field(pattern=HEX_64)


_WRITTEN = TypeAdapter(dict[Literal[*LOGS], LogHead])  # type: ignore[valid-type]


def heads_in(folder: Path) -> Heads:
    """The heads of the logs in the run folder ``folder``; of those that have one.

    Raises:
        OSError: they cannot be read.
    """
    found = {name: chain.head(folder / name) for name in LOGS[:2] if (folder / name / chain.FILE).exists()}
    if (folder / "released" / release_digests.FILE).exists():
        found["digests"] = release_digests.head(folder / "released")
    return found


def to_json(heads: Heads) -> dict[str, Any]:
    """``heads`` with hexadecimal links."""
    return {name: {"records": head.records, "head": head.link.hex()} for name, head in heads.items()}


def from_json(data: Any) -> Heads:
    """The heads that :func:`to_json` wrote.

    Raises:
        ValueError: it did not write these.
    """
    found = _WRITTEN.validate_python(data)
    return {name: Head(head.records, bytes.fromhex(head.head)) for name, head in found.items()}


def check_logs(folder: Path, noted: Mapping[str, Heads], party: str, *, synced: bool) -> None:
    """Refuse a run's logs that lack records which they had, or have others; call it before they are opened.

    Args:
        folder: of the run.
        noted: the heads of the logs when a file was written, by its name.
        party: whose folder it is.
        synced: whether records survive a loss of power; else it may have taken some that are not ``noted``.

    Raises:
        StorageError: names the log.
        OSError: a log cannot be read.
    """
    for name in LOGS[:2]:
        due = {file: heads[name] for file, heads in noted.items() if name in heads}
        if (folder / name / chain.FILE).exists() or due:
            _check_log(folder / name, due, f"{party}/{name}", synced=synced)
    file = folder / "released" / release_digests.FILE
    for source, heads in noted.items():
        head = heads.get("digests", _NONE)
        if head.records and (not file.exists() or release_digests.head(file.parent, head.records) != head):
            raise _refusal(file, f"was changed up to record {head.records}", source, "digests")


def _check_log(log: Path, noted: Mapping[str, Head], owner: str, *, synced: bool) -> None:
    """The same for one ``log``, and its heads by file."""
    links, left = chain.links(log), _fitting(log, owner)
    if synced and left < len(links):
        raise _refusal(log, f"has {counted(left, 'record')}, and had {len(links)}")
    for source, due in noted.items():
        if left < due.records:
            raise _refusal(log, f"has {counted(left, 'record')}, and had {due.records}", source, log.name)
        if due.records and links[due.records - 1] != due.link:
            raise _refusal(log, f"was changed up to record {due.records}", source, log.name)


def _fitting(folder: Path, owner: str) -> int:
    """The number of linked records of the log in ``folder``, which is that of ``owner``.

    Raises:
        StorageError: a record is not the one that was linked.
    """
    links, count = chain.links(folder), 0
    for count, record in enumerate(islice(records(folder), len(links)), 1):
        if not chain.fits(links, count, owner, record):
            raise _refusal(folder, f"was changed at record {count}")
    return count


def _refusal(log: Path, problem: str, source: str = "", field: str = "") -> StorageError:
    known = f", as {source} (heads.{field}) says" if source else ""
    return StorageError(
        f"{log} {problem}{known}: bring back the folder as it was, or begin a new run, without --resume"
    )


def checked(name: str, head: Head) -> Head:
    """``head`` of the log ``name``.

    Raises:
        ValueError: no party has such a log, or no log such a head.
    """
    if name not in LOGS:
        raise ValueError(f"{name!r} is no log: expected one of {', '.join(LOGS)}")
    if head.records < 0 or len(head.link) != LINK_BYTES:
        raise ValueError(
            f"{counted(head.records, 'record')} and a link of {counted(len(head.link), 'byte')} are no head "
            f"of {name}"
        )
    return head
