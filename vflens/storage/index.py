"""A journal's index: a line describes a payload, which is taken up again from the bytes it points at."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any, BinaryIO, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from vflens.array import Layout, quoted
from vflens.errors import StorageError
from vflens.storage.json_file import worded
from vflens.types import DTYPES, MAX_DIMENSIONS, Array, Exchange, Phase, Point, Released

_LONGEST = 1 << 20  # bytes of an index line; a network of a thousand tensors needs a tenth


class _Array(BaseModel):
    """An array in an index line; an array without elements takes no bytes."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    dtype: Literal[*DTYPES]  # type: ignore[valid-type]
    shape: list[NonNegativeInt] = Field(max_length=MAX_DIMENSIONS)
    offset: NonNegativeInt

    @property
    def end(self) -> int:
        """The payload's byte after it."""
        return self.offset + math.prod(self.shape) * DTYPES[self.dtype]


class Entry(BaseModel):
    """An index line, as :func:`index_line` writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    sender: str
    run: str
    phase: Phase
    round: NonNegativeInt
    step: NonNegativeInt
    point: Point
    rows: _Array
    tensors: list[_Array]
    nbytes: NonNegativeInt
    withheld: bool

    @property
    def end(self) -> int:
        """The payload's byte after it."""
        return (self.tensors[-1] if self.tensors else self.rows).end


def index_line(released: Released, offset: int) -> bytes:
    """The index line of a payload at byte ``offset``, from its kind's template: quicker than ``json.dumps``
    (docs/performance.md, small choices).
    """
    run, phase, epoch, step = released.exchange
    layout = released.layout
    offsets = [offset + place for place in layout.places]
    line = _template(released.sender, run, phase, released.point, layout)
    return line % (epoch, step, *offsets)


@lru_cache(maxsize=256)
def _template(sender: str, run: str, phase: Phase, point: Point, layout: Layout) -> bytes:
    """The line of payloads of one kind. It has places for round, step and the offset of each array."""
    sender, run = (quoted(text).replace("%", "%%") for text in (sender, run))
    described = [array.replace("%", "%%") + "%d}" for array in layout.described]
    return (
        f'{{"sender":{sender},"run":{run},"phase":"{phase}","round":%d,"step":%d,"point":"{point}",'
        f'"rows":{described[0]},"tensors":[{",".join(described[1:])}],'
        f'"nbytes":{layout.nbytes},"withheld":{"true" if layout.withheld else "false"}}}\n'
    ).encode()


def complete_entry(line: bytes, begin: int, size: int) -> Entry | None:
    """The entry of one index line whose payload stands at byte ``begin`` of ``size`` bytes, or None if the
    line or its payload is torn.

    Raises:
        ValueError: no journal wrote it.
    """
    if not line.endswith(b"\n"):
        return None
    try:
        entry = Entry.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        if problem["type"] == "json_invalid" and "recursion" not in problem["msg"]:
            return None
        field = ".".join(map(str, problem["loc"])) or "a line"
        raise ValueError(worded(field, problem, hidden=True)) from None
    _check_places(entry, begin)
    return entry if entry.end <= size else None


def _check_places(entry: Entry, begin: int) -> None:
    """Refuse arrays that do not stand one behind the other from ``begin``, or another number of bytes: a
    link would not bind them all.
    """
    due = begin
    for array in (entry.rows, *entry.tensors):
        if array.offset != due:
            raise ValueError(f"array {array.name!r} stands at byte {array.offset} instead of {due}")
        due = array.end
    if entry.nbytes != due - begin:
        raise ValueError(f"nbytes is {entry.nbytes}, its arrays have {due - begin}")


def index_lines(index: BinaryIO) -> Iterator[bytes]:
    """The lines of an index, each read into memory only up to the longest that a journal writes.

    Raises:
        ValueError: a line is longer.
    """
    while line := index.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ValueError(f"a line has more than {_LONGEST} bytes")
        yield line


def entries(
    index: BinaryIO, length: int, size: int, begin: int = 0, start: int = 0
) -> Iterator[tuple[int, bytes, Entry]]:
    """The byte after each line of the first ``length`` bytes of ``index``, the line and its entry, without a
    torn last line.

    Args:
        index: open for reading.
        length: its size when the log was opened.
        size: that of the payload then.
        begin: byte of the index at which reading begins.
        start: byte of the payload at which the first entry's begins.

    Raises:
        ValueError: no journal wrote a line.
        StorageError: a torn line is not the last.
    """
    index.seek(begin)
    for line in index_lines(index):
        if begin >= length:
            return
        entry, end = complete_entry(line, start, size), begin + len(line)
        if entry is None and end >= length:
            return
        if entry is None:
            raise _damaged(index, begin)
        begin, start = end, entry.end
        yield end, line, entry


def _damaged(index: BinaryIO, begin: int) -> StorageError:
    """Refuse a damaged line at byte ``begin`` with others after it: a crash damages only the last line."""
    index.seek(0)
    ends = takewhile(lambda end: end <= begin, accumulate(map(len, index_lines(index))))
    return StorageError(
        f"{index.name}: line {1 + sum(1 for _ in ends)} is damaged, or payload.bin lacks its bytes, and "
        "other lines follow it: bring back the folder as it was, or run again"
    )


def released_at(entry: Entry, data: Any) -> Released:
    """The payload that ``entry`` describes; its arrays are read-only views of the log's bytes ``data``."""
    exchange = Exchange(entry.run, entry.phase, entry.round, entry.step)
    tensors = None if entry.withheld else {t.name: _array(t, data) for t in entry.tensors}
    return Released(entry.sender, exchange, entry.point, _array(entry.rows, data), tensors=tensors)


def _array(described: _Array, data: Any) -> Array:
    count = math.prod(described.shape)
    if count:
        array = np.frombuffer(data, described.dtype, count, described.offset).reshape(described.shape)
    else:
        array = np.zeros(described.shape, described.dtype)
    array.flags.writeable = False
    return array
