"""The heads of a party's logs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from vflens.errors import StorageError
from vflens.storage import chain, release_digests
from vflens.storage.chain import LINK_BYTES, Head
from vflens.storage.journal import records

#: Log → its head: the received messages, the released predictions, the digests of the other releases.
Heads: TypeAlias = Mapping[str, Head]
_NONE = Head(0, chain.NONE)
LOGS = ("transcript", "released", "digests")


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
        ValueError, TypeError, KeyError, AttributeError, OverflowError: it did not write these.
    """
    return {
        name: checked(name, Head(int(h["records"]), bytes.fromhex(h["head"]))) for name, h in data.items()
    }


def check_logs(folder: Path, noted: Heads, party: str, *, synced: bool) -> None:
    """Refuse a run's logs that lack records which they had, or have others; call it before they are opened.

    Args:
        folder: of the run.
        noted: the heads of the logs when its status was written.
        party: whose folder it is.
        synced: whether records survive a loss of power; else it may have taken some that are not ``noted``.

    Raises:
        StorageError: names the log.
        OSError: a log cannot be read.
    """
    for name in LOGS[:2]:
        if (folder / name / chain.FILE).exists() or name in noted:
            links, left = chain.links(folder / name), _fitting(folder / name, f"{party}/{name}")
            due = noted.get(name, _NONE)
            if left < max(due.records, len(links) if synced else 0):
                raise _refusal(folder / name, f"has {left} records, and had more")
            if due.records and links[due.records - 1] != due.link:
                raise _refusal(folder / name, f"was changed up to record {due.records}")
    due, file = noted.get("digests", _NONE), folder / "released" / release_digests.FILE
    if due.records and (not file.exists() or release_digests.head(file.parent, due.records) != due):
        raise _refusal(file, f"was changed up to record {due.records}")


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


def _refusal(log: Path, problem: str) -> StorageError:
    return StorageError(
        f"{log} {problem}: bring back the folder as it was, or begin a new run, without --resume"
    )


def checked(name: str, head: Head) -> Head:
    """``head`` of the log ``name``.

    Raises:
        ValueError: no party has such a log, or no log such a head.
    """
    if name not in LOGS:
        raise ValueError(f"{name!r} is no log: expected one of {', '.join(LOGS)}")
    if head.records < 0 or len(head.link) != LINK_BYTES:
        raise ValueError(f"{head.records} records and a link of {len(head.link)} bytes are no head of {name}")
    return head
