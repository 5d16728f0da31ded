"""The heads of a party's logs, and those that it received of others' (``heads.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from vflens.errors import StorageError
from vflens.storage import chain, release_digests
from vflens.storage.chain import LINK_BYTES, Head
from vflens.storage.files import write_whole
from vflens.storage.json_file import json_object

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


def from_json(data: Any) -> Heads:
    """The heads that :func:`to_json` wrote.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, OverflowError: it did not write these.
    """
    return {
        name: checked(name, Head(int(h["records"]), bytes.fromhex(h["head"]))) for name, h in data.items()
    }


def received_in(folder: Path) -> dict[str, Heads]:
    """Party → the heads that it sent; none without ``heads.json``.

    Raises:
        StorageError: it was damaged.
    """
    file = folder / "heads.json"
    try:
        found = json_object(file.read_text(encoding="utf-8")) if file.exists() else {}
        return {party: from_json(heads) for party, heads in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise StorageError(
            f"{file} holds no heads that can be read ({error}): bring it back as it was, or remove it"
        ) from error


def keep_received(folder: Path, heads: Mapping[str, Heads]) -> None:
    """Add the ``heads`` of other parties to ``heads.json``.

    Raises:
        StorageError: it cannot be written, or earlier heads in it cannot be read.
    """
    known = received_in(folder) | dict(heads)
    document = {party: to_json(sent) for party, sent in known.items()}
    write_whole(folder / "heads.json", json.dumps(document).encode())


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
