"""What crossed the wire, counted from a party's logs: messages, bytes and rows by sender, phase and kind."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from vflens.storage.journal import index_lines
from vflens.storage.release_digests import FILE, digests
from vflens.storage.transcript import left_out
from vflens.types import Array, Phase

_PENDING = 1 << 20  # row numbers held before repeated ones are dropped: 4 MB


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
    unrecorded: int = 0
    complete: bool = True  # the bytes of all rows are there
    pending: list[Array] = field(default_factory=list)
    size: int = 0

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
        if self.size > _PENDING:
            self._drop_repeated()

    def rows(self) -> int | None:
        """The number of different rows."""
        self._drop_repeated()
        return self.size if self.complete else None

    def _drop_repeated(self) -> None:
        if self.pending:
            self.pending = [np.unique(np.concatenate(self.pending))]
            self.size = len(self.pending[0])


def received(folder: Path, receiver: str) -> tuple[Crossing, ...]:
    """What the log in ``folder`` recorded, in order of arrival, without a torn last line.

    Raises:
        OSError, ValueError: the index is damaged.
        StorageError: the counts of messages that sampling left out are damaged.
    """
    counts = _counted(folder)
    for (sender, point), (messages, nbytes, _) in left_out(folder / "left_out.json"):
        count = counts.setdefault(_Kind(sender, Phase.TRAIN.value, point.value), _Count())
        count.messages += messages
        count.nbytes += nbytes
        count.unrecorded += messages
    return tuple(
        Crossing(receiver, *kind, c.messages, c.nbytes, c.withheld, c.rows(), c.unrecorded)
        for kind, c in counts.items()
    )


def released(folder: Path, sender: str) -> tuple[Crossing, ...]:
    """What the party ``sender`` released, by its own logs in ``folder``: they do not name receivers.

    Raises:
        OSError, ValueError: a file of the logs is damaged.
    """
    counts: dict[_Kind, int] = {}
    for d in digests(folder) if (folder / FILE).exists() else ():
        kind = _Kind(sender, d.phase.value, d.point.value)
        counts[kind] = counts.get(kind, 0) + 1
    return (*(Crossing("", *kind, n, None) for kind, n in counts.items()), *received(folder, ""))


def _counted(folder: Path) -> dict[_Kind, _Count]:
    counts: dict[_Kind, _Count] = {}
    index, payload = folder / "index.jsonl", folder / "payload.bin"
    if index.exists():
        with index.open("rb") as lines, _opened(payload) as data:
            for line in index_lines(lines):
                if not line.endswith(b"\n"):
                    break  # a torn last line: its party died while writing it, or writes it now
                read = _Line.model_validate_json(line)
                kind = _Kind(read.sender, read.phase, read.point)
                counts.setdefault(kind, _Count()).add(read, _named(read.rows, data))
    return counts


@contextmanager
def _opened(payload: Path) -> Iterator[int | None]:
    """The file's descriptor; None without the file."""
    if not payload.exists():
        yield None
        return
    with payload.open("rb") as data:
        yield data.fileno()


def _named(rows: _Rows, payload: int | None) -> Array | None:
    """The rows of a message, int32 (n,); None if ``payload`` lacks their bytes."""
    nbytes = 4 * math.prod(rows.shape)
    if payload is None or (nbytes > _PENDING and rows.offset + nbytes > os.fstat(payload).st_size):
        return None  # no memory for what is not there
    data = os.pread(payload, nbytes, rows.offset)
    return np.frombuffer(data, "<i4") if len(data) == nbytes else None
