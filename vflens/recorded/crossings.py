"""What crossed the wire, counted from a party's logs: messages, bytes and rows by sender, phase and kind."""

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from vflens.array import distinct
from vflens.storage.index import index_lines
from vflens.storage.regular import opened
from vflens.storage.release_digests import FILE, RECORD_BYTES, digests
from vflens.storage.transcript import left_out
from vflens.types import Array, Phase, Point

_PENDING = 1 << 20  # row numbers held before repeated ones are first dropped: 4 MB


@dataclass(frozen=True)
class Crossing:
    """Messages of one kind from ``sender`` to ``receiver``; "": no given folder recorded it.

    ``nbytes`` counts rows and tensors, None if only digests are kept. ``rows`` are the different rows that
    the recorded messages name, None if not known. ``count`` and ``nbytes`` include ``unrecorded`` messages,
    which a sampled transcript left out; ``withheld`` and ``rows`` do not.
    """

    receiver: str
    sender: str
    phase: str
    point: str
    count: int
    nbytes: int | None
    withheld: int = 0
    rows: int | None = None
    unrecorded: int = 0


class _Rows(BaseModel):
    shape: list[NonNegativeInt]
    offset: NonNegativeInt


class _Line(BaseModel):
    """The fields of an index line that are counted."""

    sender: str
    phase: str
    point: str
    nbytes: NonNegativeInt
    withheld: bool
    rows: _Rows


class _Kind(NamedTuple):
    sender: str
    phase: str
    point: str


@dataclass
class _Count:
    messages: int = 0
    nbytes: int = 0
    withheld: int = 0
    complete: bool = True  # the bytes of all rows are there
    pending: list[Array] = field(default_factory=list)
    size: int = 0
    most: int = _PENDING  # of the size, before repeated rows are dropped

    def add(self, line: _Line, rows: Array | None) -> None:
        """One recorded message that names ``rows`` int32 (n,); None: they are not there."""
        self.messages += 1
        self.nbytes += line.nbytes
        self.withheld += line.withheld
        if rows is None:
            self.complete = False
            return
        self.pending.append(rows)
        self.size += len(rows)
        if self.size > self.most:
            self._drop_repeated()

    def rows(self) -> int | None:
        """The number of different rows."""
        self._drop_repeated()
        return self.size if self.complete else None

    def crossing(self, receiver: str, kind: _Kind, unrecorded: int, nbytes: int) -> Crossing:
        """With the messages that sampling left out, and their bytes."""
        return Crossing(
            receiver,
            *kind,
            count=self.messages + unrecorded,
            nbytes=self.nbytes + nbytes,
            withheld=self.withheld,
            rows=self.rows(),
            unrecorded=unrecorded,
        )

    def _drop_repeated(self) -> None:
        if self.pending:
            self.pending = [distinct(np.concatenate(self.pending))]
            self.size = len(self.pending[0])
            self.most = max(_PENDING, 2 * self.size)  # else each message sorts all that stay


class Logs:
    """The logs of messages in a party's ``folder``: received and released ones, counted as they grow.

    Each reading continues where the last one ended, and takes about ``most`` bytes of an index at most;
    ``behind``: the last one left some. A log that was replaced is counted anew.
    """

    def __init__(self, folder: Path, most: int = sys.maxsize) -> None:
        self._received = _Tally(folder / "transcript", most)
        self._released = _Tally(folder / "released", most)
        self._digested = _Digested(folder / "released" / FILE)

    @property
    def behind(self) -> bool:
        """Whether a log has more than was read."""
        return self._received.behind or self._released.behind

    def received(self, receiver: str) -> tuple[Crossing, ...]:
        """What the party ``receiver`` recorded, in order of arrival, without a torn last line.

        Raises:
            OSError, ValueError: the index is damaged.
            StorageError: the counts of messages that sampling left out are damaged.
        """
        return self._received.crossings(receiver)

    def released(self, sender: str) -> tuple[Crossing, ...]:
        """What the party ``sender`` released, by its own logs: they do not name receivers.

        Raises:
            OSError, ValueError: a file of the logs is damaged.
        """
        counts = self._digested.counts()
        kinds = (
            Crossing("", sender, phase, point, count=n, nbytes=None) for (phase, point), n in counts.items()
        )
        return (*kinds, *self._released.crossings(""))


class _Digested:
    """The releases of which ``file`` has digests only, by phase and kind."""

    def __init__(self, file: Path) -> None:
        self._file, self._counts, self._read = file, Counter[tuple[str, str]](), 0

    def counts(self) -> Mapping[tuple[str, str], int]:
        if not self._file.exists() or self._file.stat().st_size < self._read * RECORD_BYTES:
            self._counts, self._read = Counter(), 0
        for d in digests(self._file.parent, self._read) if self._file.exists() else ():
            self._counts[d.phase.value, d.point.value] += 1
            self._read += 1
        return self._counts


class _Tally:
    """The messages in the log ``folder``, by kind; see :class:`Logs`."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._begin_anew(None)

    def _begin_anew(self, inode: int | None) -> None:
        self._inode, self._offset, self.behind = inode, 0, False
        self._counts: dict[_Kind, _Count] = {}

    def crossings(self, receiver: str) -> tuple[Crossing, ...]:
        self._read()
        sampled = {
            _Kind(sender, Phase.TRAIN.value, point.value): counted
            for (sender, point), counted in left_out(self._folder / "left_out.json")
        }
        return tuple(
            self._counts.get(kind, _Count()).crossing(receiver, kind, *sampled.get(kind, (0, 0))[:2])
            for kind in dict.fromkeys([*self._counts, *sampled])
        )

    def _read(self) -> None:
        index, payload = self._folder / "index.jsonl", self._folder / "payload.bin"
        if not index.exists():
            self._begin_anew(None)
            return
        with opened(index) as lines, _opened(payload) as data:
            facts = os.fstat(lines.fileno())
            if facts.st_ino != self._inode or facts.st_size < self._offset:
                self._begin_anew(facts.st_ino)
            lines.seek(self._offset)
            self.behind = self._count(index_lines(lines), data)

    def _count(self, lines: Iterator[bytes], payload: int | None) -> bool:
        """Count whole lines; return whether others are left."""
        end = self._offset + self._most
        for line in lines:
            if not line.endswith(b"\n"):
                return False  # a torn last line: its party died while writing it, or writes it now
            if self._offset >= end:
                return True
            read = _Line.model_validate_json(line)
            kind = _Kind(
                read.sender, read.phase, read.point if read.point != Point.METRICS else _listed(line)
            )
            self._counts.setdefault(kind, _Count()).add(read, _named(read.rows, payload))
            self._offset += len(line)
        return False


def _listed(line: bytes) -> str:
    """Metrics with their names."""
    return f"{Point.METRICS}: {', '.join(sorted(tensor['name'] for tensor in json.loads(line)['tensors']))}"


@contextmanager
def _opened(payload: Path) -> Iterator[int | None]:
    """The file's descriptor; None without the file."""
    if not payload.exists():
        yield None
        return
    with opened(payload) as data:
        yield data.fileno()


def _named(rows: _Rows, payload: int | None) -> Array | None:
    """The rows of a message, int32 (n,); None if ``payload`` lacks their bytes."""
    nbytes = 4 * math.prod(rows.shape)
    if payload is None or (nbytes > _PENDING and rows.offset + nbytes > os.fstat(payload).st_size):
        return None  # no memory for what is not there
    data = os.pread(payload, nbytes, rows.offset)
    return np.frombuffer(data, "<i4") if len(data) == nbytes else None
