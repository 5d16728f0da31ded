"""The cells of a table on disk: CSV, plain or compressed, and parquet, read in blocks by one reader.

A small file must not fill the memory: it may unpack to 64 MiB, or to 200 times its size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import reader as csv_rows
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from vflens.errors import DataError
from vflens.names import repeated
from vflens.storage.arrow import strings
from vflens.tables.exact_numbers import MISSING, reading
from vflens.tables.written.header import one_more_than_named, refuse_cells, refuse_start
from vflens.tables.written.kinds import as_plain, unpacked_bytes
from vflens.tables.written.numbers import stands_for
from vflens.tables.written.packed import Packed
from vflens.tables.written.plain_numbers import PlainNumbers
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

#: What a table's name ends with, and how such a file is packed.
SUFFIXES = {".csv": None, ".csv.gz": "gzip", ".csv.bz2": "bz2", ".csv.zst": "zstd", ".parquet": None}
_LEAST_BYTES, _TIMES = 1 << 26, 200
#: The id of a row where no column tells rows apart: its place, counted from 1.
ROW_NUMBER = "row number"
_NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
_HEADER_BYTES, _FIRST = 1 << 16, 200
_CELLS = 1 << 20  # of parquet that are read together
_CSV_CELLS = 1 << 24  # the same of CSV, where all columns cannot be kept: 128 MiB of numbers
Whole: TypeAlias = Callable[[Sequence[str]], None]
Chunks: TypeAlias = "Iterator[tuple[int, str, pa.Array]]"
ROW_NUMBERS = re.compile(r"__index_level_\d+__")
_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)?")  # as pandas reads and writes it


def suffix(path: Path) -> str:
    """The part of the name that gives the file's format.

    Raises:
        DataError: it is not one of :data:`SUFFIXES`.
    """
    for known in SUFFIXES:
        if path.name.endswith(known):
            return known
    raise DataError(f"{path}: its suffix is none of {', '.join(SUFFIXES)}: rename or convert the file")


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """Put ``path`` before refusals; an error of the library becomes one sentence without its cell."""
    try:
        with reading():
            yield
    except DataError as error:
        if str(error).startswith(f"{path}: "):  # of a generator within
            raise
        raise DataError(f"{path}: {error}", shown=error.shown) from error.__cause__


class TableFile:
    """A table on disk, of which each call reads some columns once.

    Args:
        path: of the file.
        block_bytes: of a block of CSV, which no row exceeds.
        block_rows: of a block of parquet.
        as_stored: with all columns, as the file calls them. Else a column without a name is called "column 1"
            by its place, and row numbers of pandas are left out.
        delimiter: between cells of CSV.
        encoding: of CSV.
        header: whether the first line of CSV holds names; False: columns are called by their places, and
            None: it does, and is refused where it holds cells.
        empty: cells of a column that are missing, beside :data:`MISSING`.
        measured: columns of numbers beside which a unit may stand.

    Raises:
        DataError: it cannot be read, or unpacks to more than it may.
    """

    def __init__(
        self,
        path: Path,
        block_bytes: int = 1 << 20,
        block_rows: int = 1 << 16,
        *,
        as_stored: bool = False,
        delimiter: str = ",",
        encoding: str = "utf-8",
        header: bool | None = None,
        empty: Mapping[str, Sequence[str]] = _NONE,
        measured: Collection[str] = (),
    ) -> None:
        ending = suffix(path)
        self.is_parquet, self._packed = ending == ".parquet", SUFFIXES[ending]
        self._path, self._block_bytes, self._block_rows, self._calm = path, block_bytes, block_rows, as_stored
        self._delimiter, self._encoding, self._header_is = delimiter, encoding, header
        self._empty = {name: stands_for(cells, name in measured) for name, cells in empty.items()}
        self._skipped, self._below = 0, 1  # lines before the names, and those of names
        if path.exists() and not path.is_file():  # reading a pipe would wait
            raise DataError("it is no file: name a CSV or parquet file")
        with reading(block_bytes):
            self._size = path.stat().st_size
            self._most = max(_LEAST_BYTES, _TIMES * self._size)
            self.schema: pa.Schema = self._parquet_schema() if self.is_parquet else self._csv_schema()
        self.rows: int = self._facts.num_rows if self.is_parquet else 0
        stored: list[str] = self.schema.names
        called = stored if as_stored else [name or f"column {i + 1}" for i, name in enumerate(stored)]
        #: What the file calls each column; of CSV the reader is given names where some are missing.
        self._stored = dict(zip(called, stored if self.is_parquet else called, strict=True))
        self._header = None if called == stored and not self._skipped and self._below else called
        #: Its columns in their order, and the places of those without a name, counted from 1.
        self.names: Sequence[str] = [n for n in called if as_stored or not ROW_NUMBERS.fullmatch(n)]
        places = enumerate(zip(called, stored, strict=True), 1)
        self.nameless = {name: i for i, (name, own) in places if not own or _UNNAMED.fullmatch(own)}
        twice = repeated(self.names)
        if twice is not None:
            raise DataError(f"column {twice!r} occurs twice: rename one")
        if len(stored) == 1 and any(mark in stored[0] for mark in ";\t|"):
            raise DataError(
                "its header is one column, with other marks than a comma: separate columns by commas, or let "
                "vflens check FILE --write own.toml find the delimiter"
            )

    def chunks(
        self,
        names: Sequence[str],
        whole: Whole | None = None,
        plain: Collection[str] = (),
        by_rows: bool = False,
    ) -> Chunks:
        """See :meth:`vflens.tables.features.RawTable.chunks`; those of ``plain`` come as numbers."""
        used, few = 0, not by_rows and (self.is_parquet or whole)
        together = self._together if few else max(1, len(names))
        for some in [names[i : i + together] for i in range(0, len(names), together)]:
            start = 0
            for block in self.blocks(some, plain=plain):
                used += sum(cells.nbytes for cells in block.values())
                self._check(used)
                for name, cells in block.items():
                    yield start, name, cells
                start += len(block[some[0]])
            if whole:
                whole(some)

    def blocks(
        self,
        names: Sequence[str],
        report: Callable[[int, int], None] = lambda done, total: None,
        plain: Collection[str] = (),
    ) -> Iterator[dict[str, pa.Array]]:
        """The columns ``names`` block by block: of CSV as text, of parquet by :func:`as_plain`; null is
        missing. ``report`` gets how much was read, and of how much; ``plain`` as of :meth:`chunks`.

        Raises:
            DataError: the file is damaged, or unpacks to more than it may.
        """
        if not names:  # without names the library reads all
            return
        numbered = ROW_NUMBER in names and ROW_NUMBER not in self._stored
        asked, names = names, [n for n in names if not numbered or n != ROW_NUMBER] or self.names[:1]
        read = self._parquet_batches if self.is_parquet else self._csv_batches
        stored, rows, used = [self._stored[n] for n in names], 0, 0
        numeric = {
            self._stored[n] for n in names if n in plain and self._encoding == "utf-8" and not self._empty
        }
        batches = self._numbers_first(stored, numeric) if numeric else read(stored)
        while True:
            with reading(self._block_bytes, rows):
                batch = next(batches, None)
                if batch is None:
                    return
                # Select by name: for "a" the library also reads "a.b" of parquet.
                block = {n: self._present(n, as_plain(batch.column(self._stored[n]))) for n in names}
            if numbered:
                block[ROW_NUMBER] = strings([str(rows + i + 1) for i in range(len(batch))])
                block = {n: block[n] for n in asked}
            used += sum(cells.nbytes for cells in block.values())
            self._check(used)
            rows += len(batch)
            if self.is_parquet:
                report(rows, self._facts.num_rows)
            else:
                report(self._size if self._file.closed else self._file.tell(), self._size)
            yield block

    def _present(self, name: str, cells: pa.Array) -> pa.Array:
        """``cells`` without those that stand for none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if name not in self._empty:
            return cells
        stands = pc.match_substring_regex(cells.cast(pa.string()), self._empty[name])
        return pc.if_else(pc.fill_null(stands, False), pa.scalar(None, cells.type), cells)

    def are_bytes(self, names: Sequence[str]) -> bool:
        """See :meth:`vflens.tables.features.RawTable.are_bytes`; a CSV file stores text."""
        import pyarrow as pa

        stored = {self._stored[name] for name in names}
        if not self.is_parquet or any(self.schema.field(name).type != pa.uint8() for name in stored):
            return False
        found = [chunk.statistics for chunk in self._column_chunks() if chunk.path_in_schema in stored]
        return all(s is not None and s.has_null_count and s.null_count == 0 for s in found)

    def holds_matrix(self, names: Sequence[str]) -> bool:
        """See :meth:`vflens.tables.features.RawTable.holds_matrix`."""
        return bool(names and self.is_parquet) and tuple(names) == self._row.names and not self._empty

    def matrix(self) -> Iterator[Array]:
        """See :meth:`vflens.tables.features.RawTable.matrix`."""
        self._check(self.rows * self._row.dtype.itemsize * len(self._row.names))
        with reading():
            yield from map(self._row.matrix, self._parquet(self._row.stored(self._row.names), []))

    def _check(self, used: int) -> None:
        """Refuse the file once it unpacked to so many bytes."""
        if used > self._most:
            raise DataError(
                f"it unpacks to more than {self._most >> 20} MiB, far more than its own size: if you trust "
                "it, store it as a plain .csv"
            )

    @property
    def is_long(self) -> bool:
        """Whether it is CSV of so many cells that its numbers are better read by themselves."""
        cells = 0 if self.is_parquet else len(self.names) * self._size / self._line_bytes
        return cells > _CSV_CELLS / 16

    @property
    def _together(self) -> int:
        """How many columns are read at a time: each time the reader goes through the whole file."""
        if self.is_parquet:
            return max(1, _CELLS // max(1, int(self._facts.num_rows)))
        return len(self.names) if self._packed else max(1, int(_CSV_CELLS * self._line_bytes / self._size))

    # CSV: all columns together and as text, since types guessed from the first rows would fail on later ones.

    def _raw(self) -> tuple[pa.OSFile, pa.NativeFile]:
        """The file and, if it is packed, the stream of its contents."""
        import pyarrow as pa

        raw = pa.OSFile(str(self._path))
        return raw, pa.CompressedInputStream(raw, self._packed) if self._packed else raw

    def _csv_schema(self) -> pa.Schema:
        from pyarrow import csv

        refuse_start(self._raw()[1].read(7), self._encoding)
        # A quoted cell may hold several lines.
        self._lines = csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        blocks = csv.ReadOptions(block_size=self._block_bytes, encoding=self._encoding)
        first = self._first_lines()
        if self._header_is is False:
            blocks.column_names, self._below = [f"column {i + 1}" for i in range(len(first[0]))], 0
        elif names := one_more_than_named(first):
            blocks.column_names, blocks.skip_rows, self._skipped, self._below = names, 1, 1, 0
        elif self._header_is is None:
            refuse_cells(first[0], first[1:])
        return csv.open_csv(self._raw()[1], blocks, self._lines).schema

    def _first_lines(self) -> list[list[str]]:
        """The cells of the first lines, at least one."""
        head = self._raw()[1].read(_HEADER_BYTES).decode(self._encoding, "replace").removeprefix("\ufeff")
        lines = head.splitlines()[: -1 if len(head) > _HEADER_BYTES // 4 else None]
        self._line_bytes = len(head) / max(1, len(lines))  # about
        return list(islice(csv_rows(lines, delimiter=self._delimiter), _FIRST)) or [[]]

    def _csv_batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv

        options = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=names,
            strings_can_be_null=True,
            null_values=MISSING,
        )
        self._file, stream = self._raw()
        yield from csv.open_csv(stream, self._blocks(), self._lines, options)

    def _blocks(self) -> csv.ReadOptions:
        from pyarrow import csv

        blocks = csv.ReadOptions(block_size=self._block_bytes, use_threads=not self._calm)
        blocks.encoding = self._encoding
        if self._header:
            blocks.column_names, blocks.skip_rows = self._header, self._skipped
            blocks.skip_rows_after_names = self._below
        return blocks

    def _numbers_first(self, names: Sequence[str], numeric: set[str]) -> Iterator[pa.RecordBatch]:
        plain = PlainNumbers(self._header or self.schema.names, names, numeric, self._lines)
        self._file, stream = self._raw()
        above = self._skipped + self._below
        return plain.batches(stream, self._blocks(), above, self._csv_batches(names))

    # Parquet

    def _parquet_schema(self) -> pa.Schema:
        import pyarrow.parquet as pq

        self._facts = pq.read_metadata(self._path)
        self._check(sum(chunk.total_uncompressed_size for chunk in self._column_chunks()))
        columns = map(self._facts.schema.column, range(len(self._facts.schema)))
        #: Flat columns of texts, whose memory a dictionary hides; each is counted once.
        self._texts = {
            c.path
            for c in columns
            if c.physical_type == "BYTE_ARRAY"
            and not c.max_repetition_level
            and c.logical_type.type != "DECIMAL"
        }
        self._row = Packed(stored := self._facts.schema.to_arrow_schema())
        return self._row.schema(stored)

    def _column_chunks(self) -> Iterator[pq.ColumnChunkMetaData]:
        for group in map(self._facts.row_group, range(self._facts.num_row_groups)):
            yield from map(group.column, range(self._facts.num_columns))

    def _parquet_batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if texts := sorted(self._texts.intersection(names)):
            used = Counter[str]()
            for batch in self._parquet(texts, texts):
                for name in texts:
                    used[name] += unpacked_bytes(batch.column(name))
                    self._check(used[name])
            self._texts.difference_update(texts)
        for batch in self._parquet(self._row.stored(names), []):
            yield self._row.apart(batch, names)

    def _parquet(self, names: Sequence[str], dictionaries: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        how = {"metadata": self._facts, "buffer_size": 1 << 18, "pre_buffer": False}
        with pq.ParquetFile(self._path, read_dictionary=dictionaries, **how) as file:
            yield from file.iter_batches(self._block_rows, columns=list(names), use_threads=False)
