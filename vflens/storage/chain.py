"""A hash chain over a log: each link binds the link before it, an index line, and the digest of its arrays.

The links lie in ``chain.bin`` beside the log, 32 bytes a record; the first follows the log's name and its
party's. They hold no secret: the owner of a folder can compute them anew. They prove what others can compare,
by the heads that they received during the run.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vflens.array import DIGEST_BYTES
from vflens.storage.durable import append
from vflens.storage.regular import opened, opened_to_write, read_bytes
from vflens.types import Released

if TYPE_CHECKING:
    from vflens.storage.journal import Record

FILE = "chain.bin"
LINK_BYTES = DIGEST_BYTES
NONE = bytes(LINK_BYTES)  # of a log without records
MOST_WAITING, _MOST_BYTES = 16, 1 << 18  # records, and bytes of payload, whose links are put off


class Head(NamedTuple):
    """The link of the newest of ``records`` records."""

    records: int
    link: bytes


def start(owner: str) -> bytes:
    """What the first link of the log called ``owner`` ("party/log") follows."""
    return hashlib.blake2b(owner.encode(), digest_size=LINK_BYTES, person=b"vflens log").digest()


def linked(before: bytes, line: bytes, digest: bytes) -> bytes:
    """The link of the record with index ``line`` whose arrays have ``digest``, after the link ``before``."""
    data = before + line + digest
    return hashlib.blake2b(data, digest_size=LINK_BYTES, person=b"vflens record").digest()


def fits(links: list[bytes], number: int, owner: str, record: Record) -> bool:
    """Whether the ``number``-th of ``links``, from 1, is that of ``record`` in the log called ``owner``.

    A log may have the digests of before. Logs from before 0.2 hash the payload instead of a digest, and begin
    with :data:`NONE`.
    """
    before, earlier = (links[number - 2],) * 2 if number > 1 else (start(owner), NONE)
    if any(links[number - 1] == linked(before, record.line, digest) for digest in record.released.digests()):
        return True
    state = hashlib.blake2b(earlier + record.line, digest_size=LINK_BYTES)
    state.update(record.payload)
    return links[number - 1] == state.digest()


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
        return Head(records, file.read(LINK_BYTES) if records else NONE)


class Chain:
    """The chain of the log in ``folder``, open for appending.

    Args:
        folder: of the log.
        most: how many records the log has. Links of records that a loss of power took are cut off.
        owner: see :func:`start`.

    Raises:
        OSError: it cannot be written; also later.
    """

    def __init__(self, folder: Path, most: int, owner: str) -> None:
        self._folder, self._out = folder, opened_to_write(folder / FILE)
        self._out.truncate(LINK_BYTES * min(most, self._out.seek(0, os.SEEK_END) // LINK_BYTES))
        self._out.seek(0, os.SEEK_END)
        self._head = head(folder)
        self._newest = self._head.link if self._head.records else start(owner)
        self.waiting: list[tuple[bytes, Released]] = []  # records that have no link yet
        self._bytes = 0  # of their payloads

    @property
    def head(self) -> Head:
        """The link of the newest record."""
        self.link()
        return self._head

    def append(self, line: bytes, released: Released) -> None:
        """Add the next record; it waits for :meth:`link`, unless too many bytes wait."""
        self.waiting.append((line, released))
        self._bytes += released.layout.nbytes
        if self._bytes > _MOST_BYTES:
            self.link()

    def link(self) -> None:
        """Write the links of the records that wait: hashing takes time that a reply must not wait for."""
        if not self.waiting:
            return
        added, self.waiting, self._bytes = self.waiting, [], 0
        written, link = [], self._newest
        for line, released in added:
            link = linked(link, line, released.digest)
            written.append(link)
        append(self._out, b"".join(written), self._folder, FILE)
        self._newest, self._head = link, Head(self._head.records + len(written), link)

    def close(self) -> None:
        """Close the file; :meth:`link` before."""
        self._out.close()
