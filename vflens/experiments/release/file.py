"""Tables as files: CSV, plain or compressed, and parquet, read in blocks."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from vflens.errors import DataError
from vflens.names import repeated
from vflens.tables.exact_numbers import MISSING, beyond_exact, fault, refuse_rounded
from vflens.types import Array, Progress

SUFFIXES = {".csv": None, ".csv.gz": "gzip", ".csv.bz2": "bz2", ".csv.zst": "zstd", ".parquet": None}
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 19, 1 << 14
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_OTHER_SEPARATORS = (";", "\t", "|")
_PARSE = csv.ParseOptions(newlines_in_values=True)
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to double: invalid value")


def suffix(path: Path) -> str:
    """The part of the name that gives the file's format.

    Raises:
        DataError: it is not one of :data:`SUFFIXES`.
    """
    for known in SUFFIXES:
        if path.name.endswith(known):
            return known
    raise DataError(f"{path}: the suffix is none of {', '.join(SUFFIXES)}: rename or convert the file")


class TableFile:
    """A table on disk; ``names`` are its columns in their order.

    Raises:
        DataError: it cannot be read, has no columns, or repeats a name.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._suffix = path, suffix(path)
        self._rows = 0  # read so far
        if path.exists() and not path.is_file():
            raise DataError(f"{path} is a folder or a pipe: a table is read twice, give a file")
        with self._readable():
            self._schema: pa.Schema = pq.read_schema(path) if self._is_parquet else self._csv(None, ()).schema
        self.names = tuple(self._schema.names)
        twice = repeated(self.names)
        if twice is not None or not self.names:
            raise DataError(
                f"{path}: column {twice!r} occurs twice: rename one"
                if twice is not None
                else f"{path}: it has no columns"
            )

    def kept_type(self, name: str) -> pa.DataType:
        """The type of a copied column: its own in parquet, text in CSV; every storage of text becomes string.

        Raises:
            DataError: its cells are lists, records or bytes.
        """
        if not self._is_parquet:
            return pa.string()
        kind = self._schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        if not (
            pa.types.is_primitive(kind)
            or pa.types.is_string(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_null(kind)
        ):
            raise DataError(
                f"{self.path}: column {name!r} holds {kind}: store one number or text in each cell, or leave "
                f"the column out with --id {name}"
            )
        return kind

    def blocks(
        self, numbers: Sequence[str], others: Sequence[str], stage: str, progress: Progress
    ) -> Iterator[dict[str, pa.Array]]:
        """Columns by name, block by block: ``numbers`` as float64, ``others`` as :meth:`kept_type`; null is
        missing.

        Raises:
            DataError: a cell of ``numbers`` is no number, or the file is damaged.
        """
        if not numbers and not others:
            return
        with self._readable():
            read = self._parquet_blocks if self._is_parquet else self._csv_blocks
            yield from read(numbers, others, stage, progress)

    def text_columns(self, among: Sequence[str], progress: Progress) -> list[str]:
        """The columns of ``among`` with other cells than numbers."""
        if self._is_parquet:
            return [n for n in among if not _is_number(self._schema.field(n).type)]
        found: set[str] = set()
        for block in self.blocks((), among, "looking for text", progress):
            found |= {n for n in among if n not in found and not _all_numbers(block[n])}
        return [n for n in among if n in found]

    @property
    def index(self) -> tuple[str, ...]:
        """The columns in which pandas wrote a frame's index."""
        try:
            stated = list((self._schema.pandas_metadata or {})["index_columns"])
        except (ValueError, KeyError, TypeError):  # no metadata, or that of another program
            stated = []
        return tuple(n for n in self.names if n in stated or _PANDAS_INDEX.fullmatch(n))

    @property
    def separator_hint(self) -> str:
        """A hint if the header is one name with another separator in it, else ""."""
        found = next((s for s in _OTHER_SEPARATORS if s in self.names[0]), None)
        if found is None or len(self.names) > 1:
            return ""
        return f" (its one name holds {found!r}: if that separates columns, save the table with commas)"

    @property
    def _is_parquet(self) -> bool:
        return self._suffix == ".parquet"

    def _csv(self, stream: Any, types: Sequence[tuple[str, pa.DataType]]) -> csv.CSVStreamingReader:
        options = csv.ConvertOptions(
            column_types=dict(types),
            include_columns=[n for n, _ in types],
            strings_can_be_null=True,
            null_values=MISSING,
        )
        if stream is None:
            _, stream = self._opened()
        reading = csv.ReadOptions(
            use_threads=False, block_size=_BLOCK_BYTES
        )  # with threads, errors name no row
        return csv.open_csv(stream, read_options=reading, parse_options=_PARSE, convert_options=options)

    def _opened(self) -> tuple[pa.OSFile, Any]:
        """The file and, if compressed, the stream of its contents."""
        raw, kind = pa.OSFile(str(self.path)), SUFFIXES[self._suffix]
        return raw, pa.CompressedInputStream(raw, kind) if kind else raw

    def _csv_blocks(
        self, numbers: Sequence[str], others: Sequence[str], stage: str, progress: Progress
    ) -> Iterator[dict[str, pa.Array]]:
        types = [(n, pa.float64()) for n in numbers] + [(n, pa.string()) for n in others]
        raw, stream = self._opened()
        size = raw.size()
        self._rows, exact = 0, set[str]()
        for batch in self._csv(stream, types):
            progress(stage, raw.tell() if not raw.closed else size, size)
            block = {name: batch.column(i) for i, (name, _) in enumerate(types)}
            for name in numbers:
                if name not in exact and beyond_exact(floats(block[name])):
                    self._refuse_rounded_text(name)
                    exact.add(name)
            yield block
            self._rows += len(batch)

    def _refuse_rounded_text(self, name: str) -> None:
        """Read a column of a CSV file again, as text: numbers do not show whether they are rounded."""
        first = 0
        for batch in self._csv(None, [(name, pa.string())]):
            self._refuse_rounded(name, batch.column(0), first)
            first += len(batch)

    def _parquet_blocks(
        self, numbers: Sequence[str], others: Sequence[str], stage: str, progress: Progress
    ) -> Iterator[dict[str, pa.Array]]:
        for name in numbers:
            kind = self._schema.field(name).type
            if not _is_number(kind):
                raise not_numeric(self.path, name, f"holds {kind}")
        done = 0
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_BLOCK_ROWS, columns=[*numbers, *others], use_threads=False):
                for n in numbers:
                    self._refuse_rounded(n, batch.column(n), done)
                done += batch.num_rows
                progress(stage, done, file.metadata.num_rows)
                yield {n: batch.column(n).cast(pa.float64(), safe=False) for n in numbers} | {
                    n: batch.column(n).cast(self.kept_type(n)) for n in others
                }

    def _refuse_rounded(self, name: str, column: pa.Array, first: int) -> None:
        try:
            refuse_rounded(name, column, first)
        except DataError as error:
            raise DataError(f"{self.path}: {error}; --id {name} leaves it out", shown=error.shown) from error

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise DataError(f"{self.path}: there is no such file: check the path") from error
        except pa.ArrowException as error:
            found = _CONVERSION.search(str(error))
            if found:
                column, row = self.names[int(found[1])], int(found[2]) - 1
                raise not_numeric(
                    self.path, column, f"holds text in data row {row}", self.separator_hint
                ) from error
            raise self._unreadable(error) from error
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: {fault(error, _BLOCK_BYTES, self._rows)}")


# pyarrow's own conversions to NumPy load pandas, which is slow; these do not.


def cells(column: pa.Array) -> Array:
    """The numbers of a column (n,), arbitrary where it is null."""
    data = [None, column.buffers()[1]]
    values: Array = np.from_dlpack(
        pa.Array.from_buffers(column.type, len(column), data, offset=column.offset)
    )
    return values


def floats(column: pa.Array) -> Array:
    """A float64 column (n,), NaN where it is null."""
    return np.where(nulls(column), np.nan, cells(column)) if column.null_count else cells(column)


def nulls(column: pa.Array) -> Array:
    """Where a column is null or NaN, (n,)."""
    missing: Array = cells(column.is_null(nan_is_null=True).cast(pa.int8())) > 0
    return missing


def as_column(values: Array) -> pa.Array:
    """Numbers (n,) as a column."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, data])


def not_numeric(path: Path, column: str, what: str, hint: str = "") -> DataError:
    """The refusal of a column with other cells than numbers."""
    return DataError(
        f"{path}: column {column!r} {what}, which is not a number: choose --encode {column}=ordinal, "
        f"one_hot, number or date, or, if it identifies rows, leave it out with --id {column}{hint}"
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _all_numbers(column: pa.Array) -> bool:
    for trim in (False, True):  # trimming takes as long as reading the numbers; few need it
        with suppress(pa.ArrowInvalid):
            (pc.utf8_trim_whitespace(column) if trim else column).cast(pa.float64())
            return True
    return False
