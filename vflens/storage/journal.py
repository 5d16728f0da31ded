"""An append-only log of released payloads: ``index.jsonl`` and ``payload.bin`` in one folder.

A line of the index describes one payload and gives the place of its bytes. The caller's thread writes each
payload at once: a separate writer's thread would compete for the interpreter and take three times as long. So
a killed process loses no appended payload. Opening the log drops a record torn by a full disk or a power
failure.
"""

import contextlib
import hashlib
import mmap
import threading
from array import array as packed
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from vflens.errors import StorageError
from vflens.failpoints import fail_point
from vflens.storage.chain import MOST_WAITING, Chain, Head
from vflens.storage.durable import sync, sync_name
from vflens.storage.index import Entry, entries, index_line, released_at
from vflens.storage.json_file import in_words
from vflens.storage.regular import make_folder, opened, opened_to_write
from vflens.types import Array, Phase, Point, Released

BLOCK_BYTES = 64 * 1024  # larger writes stall the page cache
_ANY_PHASE = frozenset(Phase)


class Journal:
    """The log in ``folder``, open for appending and reading.

    Args:
        folder: holds the two files.
        chained: keep a :class:`vflens.storage.chain.Chain` too, for a log that is evidence.
        party: whose log it is, for the chain.

    Raises:
        StorageError: the folder cannot be written, or holds a damaged log; also later, from ``append``, on a
            full disk. Earlier payloads stay readable.
    """

    def __init__(self, folder: Path, *, chained: bool = False, party: str = "") -> None:
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
            self._chain = (
                files.enter_context(contextlib.closing(Chain(folder, count, f"{party}/{self._name}")))
                if chained
                else None
            )
            if self._chain is not None:  # a killed process may not have written the newest link
                for record in islice(records(folder), self._chain.head.records, None):
                    self._chain.append(record.line, record.released)
            self._payload.seek(self._offset)
            sync_name(folder / "index.jsonl")
            self._files = files.pop_all()

    def append(self, *released: Released) -> None:
        """Write payloads, in one piece each of both files.

        Raises:
            StorageError: they cannot be written; the log has a torn end and takes no later payload either.
        """
        with self._lock:
            if self._error is not None:
                self._raise_error()
            try:
                self._append(released)
            except OSError as error:
                self._error = error
                self._raise_error()

    def _append(self, messages: Sequence[Released]) -> None:
        lines, end = [], self._offset
        for released in messages:
            lines.append(index_line(released, end))
            end += released.layout.nbytes
        fail_point(self._name, "begun")
        self._write_payloads(messages, end - self._offset)  # first: no index line points at missing bytes
        sync(self._payload.fileno(), self.folder)
        fail_point(self._name, "payload")
        _write_blocks(self._index, b"".join(lines))
        sync(self._index.fileno(), self.folder)
        fail_point(self._name, "written")
        self._offset = end
        if self._chain is not None:
            for line, released in zip(lines, messages, strict=True):
                self._chain.append(line, released)

    def _write_payloads(self, messages: Sequence[Released], nbytes: int) -> None:
        arrays: list[Any] = [array for released in messages for array in released.arrays]
        if nbytes <= BLOCK_BYTES:  # a copy costs less than a second write call
            _write_blocks(self._payload, b"".join(arrays))
        else:
            for array in arrays:
                _write_blocks(self._payload, _bytes(array))

    @property
    def head(self) -> Head:
        """The newest link of a chained log."""
        assert self._chain is not None, "a log without a chain has no head"
        with self._lock, self._storage():
            return self._chain.head

    def link(self) -> None:
        """Write links if enough records of a chained log wait for them: call it when no reply waits."""
        if self._chain is not None and len(self._chain.waiting) >= MOST_WAITING:
            self._link_all()

    def _link_all(self) -> None:
        if self._chain is not None and self._chain.waiting:
            with self._lock, self._storage():
                self._chain.link()

    def check(self) -> None:
        """Raise the write error again for callers that did not see it.

        Raises:
            StorageError: a payload could not be written.
        """
        self._raise_error()
        self._link_all()

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
            self._link_all()
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
        for *_, entry in log.entries():
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
        for _, line, entry in log.entries():
            start = entry.rows.offset
            yield Record(line, data[start : start + entry.nbytes], released_at(entry, log.data))


class _Snapshot(NamedTuple):
    """A log's index and its size in bytes at opening, the payload's size, and the payload's bytes, mapped."""

    lines: BinaryIO
    length: int
    size: int
    data: Any

    def entries(self, begin: int = 0, start: int = 0) -> Iterator[tuple[int, bytes, Entry]]:
        return entries(self.lines, self.length, self.size, begin, start)


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
        self._ends = 0, 0  # of the parsed lines, and of their payloads

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
            for end, _, entry in log.entries(*self._ends):
                kind = (entry.phase, entry.point, entry.sender)
                self._lines.setdefault(kind, packed("q")).append(self._ends[0])
                self._ends = end, entry.end

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
        f"{folder} is not a readable log ({in_words(error)}): bring it back as it was, or give the folder "
        "of a whole run"
    )


def _whole_records(folder: Path) -> tuple[int, int, int]:
    """The ends of the last complete entry in index and payload, and the number of entries."""
    kept = end = count = 0
    if (folder / "index.jsonl").exists() and (folder / "payload.bin").exists():
        with _snapshot(folder) as log:
            for behind, _, entry in log.entries():
                kept, end, count = behind, entry.end, count + 1
    return kept, end, count


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _write_blocks(file: BinaryIO, data: bytes | memoryview) -> None:
    while (written := file.write(data[:BLOCK_BYTES])) < len(data):
        data = memoryview(data)[written:]
