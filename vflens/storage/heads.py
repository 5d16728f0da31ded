"""The heads of a party's logs: as found in its folder, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from vflens.storage import chain, release_digests
from vflens.storage.chain import LINK_BYTES, Head

#: Log → its head: the received messages, the released predictions, the digests of the other releases.
Heads: TypeAlias = Mapping[str, Head]
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
