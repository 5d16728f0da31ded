"""A hash chain over a log: each link is BLAKE2b-256 over the link before it, an index line and its payload.

The links lie in ``chain.bin`` beside the log, 32 bytes a record. They hold no secret: the owner of a folder
can compute them anew. They prove what others can compare, by the heads that they received during the run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from vflens.storage.durable import append
from vflens.storage.regular import opened, opened_to_write, read_bytes

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FILE = "chain.bin"
LINK_BYTES = 32
START = bytes(LINK_BYTES)  # before the first record
_MOST_WAITING = 1 << 18  # bytes of payload whose links are put off

#: A record's bytes, in one piece or several.
Payload: TypeAlias = "Sequence[ReadableBuffer]"


class Head(NamedTuple):
    """The link of the newest of ``records`` records."""

    records: int
    link: bytes


def linked(before: bytes, line: bytes, payload: Payload) -> bytes:
    """The link of the record with index ``line`` and ``payload``, after the link ``before``."""
    state = hashlib.blake2b(before + line, digest_size=LINK_BYTES)
    for part in payload:
        state.update(part)
    return state.digest()


def links(folder: Path) -> list[bytes]:
    """The whole links of the log in ``folder``, in order; none where no chain was written.

    Raises:
        OSError: they cannot be read.
    """
    file = folder / FILE
    data = read_bytes(file) if file.exists() else b""
    return [data[end - LINK_BYTES : end] for end in range(LINK_BYTES, len(data) + 1, LINK_BYTES)]


def head(folder: Path) -> Head:
    """The newest link of the log in ``folder``.

    Raises:
        OSError: it cannot be read.
    """
    with opened(folder / FILE) as file:
        records = file.seek(0, os.SEEK_END) // LINK_BYTES
        file.seek(max(records - 1, 0) * LINK_BYTES)
        return Head(records, file.read(LINK_BYTES) if records else START)


class Chain:
    """The chain of the log in ``folder``, open for appending.

    Args:
        folder: of the log.
        most: how many records the log has. Links of records that a loss of power took are cut off.

    Raises:
        OSError: it cannot be written; also later.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._file = folder / FILE
        self._out = opened_to_write(self._file)
        self._out.truncate(LINK_BYTES * min(most, self._out.seek(0, os.SEEK_END) // LINK_BYTES))
        self._out.seek(0, os.SEEK_END)
        self._head = head(folder)
        self._waiting: list[tuple[bytes, Payload]] = []
        self._bytes = 0  # of the payloads that wait

    @property
    def head(self) -> Head:
        """The link of the newest record."""
        self.link()
        return self._head

    @property
    def waits(self) -> bool:
        """Whether a record has no link yet."""
        return bool(self._waiting)

    def append(self, line: bytes, payload: Payload, nbytes: int) -> None:
        """Add the next record; it waits for :meth:`link`, unless too much waits."""
        self._waiting.append((line, payload))
        self._bytes += nbytes
        if self._bytes > _MOST_WAITING:
            self.link()

    def link(self) -> None:
        """Write the links of the records that wait: hashing takes time that a reply must not wait for."""
        if not self._waiting:
            return
        added, self._waiting, self._bytes = self._waiting, [], 0
        written, link = [], self._head.link
        for line, payload in added:
            link = linked(link, line, payload)
            written.append(link)
        append(self._out, b"".join(written), self._file)
        self._head = Head(self._head.records + len(written), link)

    def close(self) -> None:
        """Close the file; :meth:`link` before."""
        self._out.close()
