"""An append-only log of released payloads: ``index.jsonl`` and ``payload.bin`` in one folder.

A line of the index describes one payload and gives the place of its bytes. The caller's thread writes each
payload at once: a separate writer's thread would compete for the interpreter and take three times as long. So
a killed process loses no appended payload. Opening the log drops a record torn by a full disk or a power
failure.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import threading
from array import array as packed
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate, chain, islice, takewhile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from vflens.errors import StorageError
from vflens.failpoints import fail_point
from vflens.storage.chain import Chain, Head
from vflens.storage.durable import sync, sync_name
from vflens.storage.index import Entry, complete_entry, index_line, released_at
from vflens.storage.regular import make_folder, opened, opened_to_write
from vflens.types import Array, Phase, Point, Released

BLOCK_BYTES = 64 * 1024  # larger writes stall the page cache
_LONGEST = 1 << 20  # bytes of an index line; a network of a thousand tensors needs a tenth
_ANY_PHASE = frozenset(Phase)


class Journal:
    """The log in ``folder``, open for appending and reading.

    Args:
        folder: holds the two files.
        chained: keep a :class:`vflens.storage.chain.Chain` too, for a log that is evidence.

    Raises:
        StorageError: the folder cannot be written, or holds a damaged log; also later, from ``append``, on a
            full disk. Earlier payloads stay readable.
    """

    def __init__(self, folder: Path, *, chained: bool = False) -> None:
        self.folder, self._name = folder, folder.name
        self._error: OSError | None = None
        self._lock = threading.Lock()
        with self._storage(), contextlib.ExitStack() as files:
            make_folder(folder)
            kept, self._offset, count = _whole_records(folder)
            self._index = files.enter_context(opened_to_write(folder / "index.jsonl", "ab"))
            self._index.truncate(kept)
            self._payload = files.enter_context(opened_to_write(folder / "payload.bin"))
            self._payload.truncate(self._offset)
            self._chain = files.enter_context(contextlib.closing(Chain(folder, count))) if chained else None
            if self._chain is not None:  # a killed process may not have written the newest link
                for record in islice(records(folder), self._chain.head.records, None):
                    self._chain.append(record.line, [record.payload], record.released.nbytes)
            self._payload.seek(self._offset)
            sync_name(folder / "index.jsonl")
            self._files = files.pop_all()

    def append(self, released: Released) -> None:
        """Write one payload.

        Raises:
            StorageError: it cannot be written; the log has a torn end and takes no later payload either.
        """
        with self._lock:
            self._raise_error()
            line, arrays = index_line(released, self._offset)
            joined = released.nbytes <= BLOCK_BYTES  # a copy costs less than a second write call
            payload = [b"".join(a.data for a in arrays)] if joined else [_bytes(a) for a in arrays]
            try:  # payload first: an index line never points at missing bytes
                fail_point(self._name, "begun")
                for data in payload:
                    _write_blocks(self._payload, data)
                sync(self._payload.fileno(), self.folder)
                fail_point(self._name, "payload")
                _write_blocks(self._index, line)
                sync(self._index.fileno(), self.folder)
                fail_point(self._name, "written")
                if self._chain is not None:
                    self._chain.append(line, payload, released.nbytes)
            except OSError as error:
                self._error = error
                self._raise_error()
            self._offset += released.nbytes

    @property
    def head(self) -> Head:
        """The newest link of a chained log."""
        assert self._chain is not None, "a log without a chain has no head"
        with self._lock, self._storage():
            return self._chain.head

    def link(self) -> None:
        """See :meth:`vflens.storage.chain.Chain.link`; nothing in a log without a chain."""
        if self._chain is not None and self._chain.waits:
            with self._lock, self._storage():
                self._chain.link()

    def check(self) -> None:
        """Raise the write error again for callers that did not see it.

        Raises:
            StorageError: a payload could not be written.
        """
        self._raise_error()
        self.link()

    def restart(self) -> None:
        """Empty the log. New payloads overwrite its bytes, which is cheaper than a growing file
        (docs/performance.md, small choices).
        """
        with self._lock, self._storage():
            self._index.truncate(0)
            sync(self._index.fileno(), self.folder)
            self._offset = self._payload.seek(0)
            fail_point(self._name, "emptied")

    def close(self) -> None:
        """Close the files."""
        with contextlib.suppress(StorageError):  # the reader of a chain sees that its end is missing
            self.link()
        self._files.close()

    def __iter__(self) -> Iterator[Released]:
        """All payloads in order of appending; arrays are read-only views of the memory map."""
        return read(self.folder)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise StorageError(
                f"the log {self.folder} cannot be written ({self._error.strerror}): free space or choose "
                "another `out`; what was written before is kept"
            ) from self._error

    @contextlib.contextmanager
    def _storage(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._error = error
            self._raise_error()


def read(folder: Path) -> Iterator[Released]:
    """The payloads of a log, in order, without a torn last line.

    Raises:
        StorageError: the folder holds no log, or the log is damaged.
    """
    with _snapshot(folder) as log:
        for *_, entry in _entries(log):
            yield released_at(entry, log.data)


class Record(NamedTuple):
    """One whole record of a log: its index line with the line's end, and its payload, raw and as arrays."""

    line: bytes
    payload: memoryview
    released: Released


def records(folder: Path) -> Iterator[Record]:
    """The whole records of a log, in order, without a torn last line.

    Raises:
        StorageError: the folder holds no log, or the log is damaged.
    """
    with _snapshot(folder) as log:
        data = memoryview(log.data)
        for _, line, entry in _entries(log):
            start = entry.rows.offset
            yield Record(line, data[start : start + entry.nbytes], released_at(entry, log.data))


class _Snapshot(NamedTuple):
    """A log's index and its size in bytes at opening, the payload's size, and the payload's bytes, mapped."""

    lines: BinaryIO
    length: int
    size: int
    data: Any


@contextlib.contextmanager
def _snapshot(folder: Path) -> Iterator[_Snapshot]:
    """The log in ``folder``."""
    try:
        with opened(folder / "index.jsonl") as index, opened(folder / "payload.bin") as payload:
            length = index.seek(0, 2)  # first: a growing log has the payload of all lines read so far
            size = payload.seek(0, 2)
            data: Any = mmap.mmap(payload.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
            with _reading(folder):
                yield _Snapshot(index, length, size, data)
    except OSError as error:
        raise _unreadable(folder, error) from error


class Reader:
    """The log in ``folder``, which may grow: iterated whole, or by phase, point and sender.

    It parses every index line once and keeps only the places of the messages of each kind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._reading = folder, threading.Lock()
        self._lines: dict[tuple[Phase, Point, str], packed[int]] = {}  # their places, in order of arrival
        self._end = 0  # end of the parsed lines

    def __iter__(self) -> Iterator[Released]:
        return read(self._folder)

    def select(
        self, *points: Point, phases: Collection[Phase] = _ANY_PHASE, sender: str | None = None
    ) -> Iterator[Released]:
        """Messages of ``points`` in ``phases`` from ``sender`` (None: any) that arrived so far, in order.

        Raises:
            StorageError: the folder holds no log, or the log is damaged.
        """
        with self._reading:
            self._parse_new_lines()
            kinds = (k for k in self._lines if k[0] in phases and k[1] in points and sender in (None, k[2]))
            found = sorted(chain.from_iterable(self._lines[kind] for kind in kinds))
        return self._at(found)

    def _parse_new_lines(self) -> None:
        with _snapshot(self._folder) as log:
            for end, _, entry in _entries(log, self._end):
                kind = (entry.phase, entry.point, entry.sender)
                self._lines.setdefault(kind, packed("q")).append(self._end)
                self._end = end

    def _at(self, found: Iterable[int]) -> Iterator[Released]:
        with _snapshot(self._folder) as log:
            for begin in found:
                log.lines.seek(begin)
                yield released_at(Entry.model_validate_json(log.lines.readline()), log.data)


class Messages(list[Released]):
    """Messages in memory, in order of arrival, with the methods of a :class:`Reader`."""

    def select(
        self, *points: Point, phases: Collection[Phase] = _ANY_PHASE, sender: str | None = None
    ) -> Iterator[Released]:
        """See :meth:`Reader.select`."""
        return (
            r for r in self if r.point in points and r.exchange.phase in phases and sender in (None, r.sender)
        )


def digest(folder: Path) -> str:
    """BLAKE2b over index and payload, in hexadecimal; equal logs, equal digests (they hold no times)."""
    state = hashlib.blake2b(digest_size=32)
    for name in ("index.jsonl", "payload.bin"):
        with opened(folder / name) as file:
            while block := file.read(1 << 20):
                state.update(block)
    return state.hexdigest()


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn the errors of an index line of the log in ``folder`` into one sentence."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: Exception) -> StorageError:
    return StorageError(
        f"{folder} is not a readable log ({error}): give a party's recorded transcript folder"
    )


def index_lines(index: BinaryIO) -> Iterator[bytes]:
    """The lines of an index, each read into memory only up to the longest that a journal writes.

    Raises:
        ValueError: a line is longer.
    """
    while line := index.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ValueError(f"a line has more than {_LONGEST} bytes")
        yield line


def _entries(log: _Snapshot, begin: int = 0) -> Iterator[tuple[int, bytes, Entry]]:
    """The byte after each line from byte ``begin`` of the index, the line and its entry, without a torn last
    line.

    Raises:
        ValueError: no journal wrote a line.
        StorageError: a torn line is not the last.
    """
    log.lines.seek(begin)
    for line in index_lines(log.lines):
        entry, end = complete_entry(line, log.size), begin + len(line)
        if begin >= log.length or (entry is None and end >= log.length):
            return
        if entry is None:
            raise _damaged(log.lines, begin)
        begin = end
        yield end, line, entry


def _damaged(index: BinaryIO, begin: int) -> StorageError:
    """Refuse a damaged line at byte ``begin`` with others after it: a crash damages only the last line."""
    index.seek(0)
    ends = takewhile(lambda end: end <= begin, accumulate(map(len, index_lines(index))))
    return StorageError(
        f"{index.name}: line {1 + sum(1 for _ in ends)} is damaged, or payload.bin lacks its bytes, and "
        "other lines follow it: bring back the folder as it was, or run again"
    )


def _whole_records(folder: Path) -> tuple[int, int, int]:
    """The ends of the last complete entry in index and payload, and the number of entries."""
    kept = end = count = 0
    if (folder / "index.jsonl").exists() and (folder / "payload.bin").exists():
        with _snapshot(folder) as log:
            for behind, _, entry in _entries(log):
                kept, end, count = behind, entry.end, count + 1
    return kept, end, count


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _write_blocks(file: BinaryIO, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view[:BLOCK_BYTES]) :]
