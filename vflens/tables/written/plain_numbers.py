"""CSV whose numbers are read as such: their texts take longer, and tell more only here and there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vflens.storage.arrow import in_numpy
from vflens.tables.exact_numbers import MISSING, beyond_exact, reading

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

    from vflens.types import Array

_PIECES = 4  # of the size of a block, in each of which a row ends, that are read together
_QUOTE, _LINE, _RETURN, _ZERO, _POINT = b'"\n\r0.'


class _OddError(Exception):
    """What quotes enclose, or where a row ends, is not plain."""


@dataclass
class PlainNumbers:
    """Reads the columns ``wanted`` of a file in UTF-8 that has the columns ``names``: the ``numeric`` among
    them as float64, others as text. From the first block on in which its texts tell more a column is text:
    words, leading zeros, integers that float64 may round, what is not finite.
    """

    names: Sequence[str]
    wanted: Sequence[str]
    numeric: set[str]
    lines: csv.ParseOptions

    def batches(
        self, stream: pa.NativeFile, first: csv.ReadOptions, above: int, texts: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """All rows of ``stream``, whose first block is read with ``first`` and has so many lines ``above``.

        From what is written in an odd way on they are those of ``texts``, which are all rows once more.
        """
        import pyarrow as pa

        given, rows, size = 0, 0, first.block_size
        with suppress(_OddError, pa.ArrowException):
            for batch in self._plain(stream, first, above):
                given += len(batch)
                yield batch
            return
        while True:
            with reading(size, rows):
                text = next(texts, None)
            if text is None:
                return
            rows += len(text)
            yield text.slice(max(0, len(text) - max(0, rows - given)))

    def _plain(self, stream: pa.NativeFile, first: csv.ReadOptions, above: int) -> Iterator[pa.RecordBatch]:
        from pyarrow import csv

        blocks = first
        for raw in filter(None, _whole_rows(stream, ord(self.lines.delimiter), first.block_size)):
            yield from self._table(raw, blocks, above).to_batches()
            above, blocks = 0, csv.ReadOptions(column_names=self.names, use_threads=first.use_threads)

    def _table(self, raw: bytes, blocks: csv.ReadOptions, above: int) -> pa.Table:
        """The rows of one block; takes from ``numeric`` what its texts tell more of."""
        import pyarrow as pa

        while True:
            try:
                found = self._read(raw, blocks, self.numeric)
                odd = {name for name in self.numeric if _is_odd(found[name])}
                odd |= self.numeric.intersection(self._with_zeros(raw, above + len(found)))
            except pa.ArrowInvalid:
                texts = self._read(raw, blocks, set())
                odd = {name for name in self.numeric if not _holds_numbers(texts[name])}
                if not odd:
                    raise
            if not odd:
                return found
            self.numeric -= odd

    def _read(self, raw: bytes, blocks: csv.ReadOptions, numeric: set[str]) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv

        blocks.block_size = len(raw) + 1
        kinds = {name: pa.float64() if name in numeric else pa.string() for name in self.wanted}
        options = csv.ConvertOptions(
            column_types=kinds, include_columns=self.wanted, strings_can_be_null=True, null_values=MISSING
        )
        return csv.read_csv(pa.BufferReader(raw), blocks, self.lines, options)

    def _with_zeros(self, raw: bytes, rows: int) -> list[str]:
        """The columns in which a text begins with a 0 that a number loses."""
        marks, mark = np.frombuffer(b"\n" + raw, np.uint8), ord(self.lines.delimiter)
        zeros, before, after = marks[1:-1] == _ZERO, marks[:-2], marks[2:]
        zeros &= (before < ord("-")) | (before == mark)  # few are left to be looked at
        at = np.flatnonzero(zeros & (after != _POINT)) + 1
        ends = [mark, _LINE, _RETURN, _QUOTE]
        at = at[np.isin(marks[at - 1], ends) & ~np.isin(marks[at + 1], ends)]
        if not len(at):
            return []
        cells = np.flatnonzero((marks == mark) | (marks == _LINE))[1:]
        if len(cells) != rows * len(self.names):
            raise _OddError
        return [self.names[j] for j in set((np.searchsorted(cells, at) % len(self.names)).tolist())]


def _holds_numbers(cells: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.utf8_trim(cells, " \t").cast(pa.float64())
    except pa.ArrowException:
        return False
    return True


def _is_odd(cells: pa.ChunkedArray) -> bool:
    numbers: Array = in_numpy(cells)
    return beyond_exact(numbers) or int(np.count_nonzero(np.isnan(numbers))) != cells.null_count


def _whole_rows(stream: pa.NativeFile, mark: int, piece: int) -> Iterator[bytes]:
    """The bytes of ``stream`` in blocks that end with a row."""
    rest = b""
    while pieces := list(filter(None, (stream.read(piece) for _ in range(_PIECES)))):
        if any(b"\n" not in part for part in pieces if len(part) == piece):
            raise _OddError
        raw = rest + b"".join(pieces)
        end = _end(raw, mark)
        yield raw[:end]
        rest = raw[end:]
    if rest and _end(rest := rest + b"\n", mark) != len(rest):
        raise _OddError
    yield rest


def _end(raw: bytes, mark: int) -> int:
    """Where the last whole row of ``raw`` ends; each quote before it begins or ends a cell of one line."""
    end = raw.rfind(b"\n") + 1
    marks = np.frombuffer(raw, np.uint8, end)
    quotes = np.flatnonzero(marks == _QUOTE)
    if not len(quotes):
        return end
    inside = np.searchsorted(quotes, np.flatnonzero(marks == _LINE)) % 2
    if inside.any():
        raise _OddError
    beside = [mark, _LINE, _RETURN]
    opened, closed = quotes[::2], quotes[1::2]
    if not (
        np.isin(marks[opened[opened > 0] - 1], beside).all() and np.isin(marks[closed + 1], beside).all()
    ):
        raise _OddError
    return end
