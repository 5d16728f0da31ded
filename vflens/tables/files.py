"""Reads a party's own CSV (``.csv``, ``.csv.gz``; UTF-8, commas), parquet file or folder of images by its
:class:`PartyFile`.

A refusal of a file that does not fit its description names the column, the row and the remedy. An empty
cell and the words of pandas for a missing one (``NA``, ``n/a``, ``null``, …) are missing; ``?`` and
``unknown`` are text.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vflens.errors import DataError, StorageError
from vflens.names import repeated
from vflens.storage.arrow import numbers, strings
from vflens.storage.json_file import in_words
from vflens.storage.regular import sha256
from vflens.tables.description import PartyFile
from vflens.tables.exact_numbers import MISSING, fault
from vflens.tables.flaws import TableCheck, flaws
from vflens.tables.image_folder import read_images
from vflens.tables.profile import ColumnProfile, profile
from vflens.tables.reading import SPLITS, RawTable, feature_names, table_of
from vflens.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_CHUNK_ROWS, _BUFFER_BYTES, _BLOCK_BYTES = 1 << 16, 1 << 18, 1 << 20
_ROW_NUMBERS = re.compile(r"__index_level_\d+__")


def read_party_table(spec: PartyFile, base: Path = Path()) -> Table:
    """The table that ``spec`` describes; a relative ``spec.file`` is relative to ``base``.

    Raises:
        DataError: the file or one of its values is not as described; the message names it and the remedy.
    """
    import pyarrow as pa

    path = base / spec.file
    try:
        if path.is_dir():
            with _reading():
                return read_images(spec, path)
        with _opened(path) as cells:
            table = table_of(spec, cells)
    except DataError as error:
        raise DataError(f"{path}: {error}", shown=error.shown) from error.__cause__
    pa.default_memory_pool().release_unused()  # else Arrow keeps as much memory as the file for later use
    return table


def digest_of(file: Path) -> dict[str, str]:
    """``file`` by its name, and its ``sha256``; {} of a folder and of what cannot be read."""
    try:
        return {} if file.is_dir() else {"file": file.name, "sha256": sha256(file)}
    except OSError:
        return {}


def check_party_table(spec: PartyFile, base: Path = Path()) -> TableCheck | None:
    """What is to be mended in the file that ``spec`` describes, all at once; None of a folder of images.

    Raises:
        DataError: it is no table, or a column is absent.
    """
    import pyarrow as pa

    path = base / spec.file
    if path.is_dir():
        return None
    try:
        with _opened(path) as cells:
            names = feature_names(spec, cells.names)
            found = profile(spec, names, cells)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error.__cause__
    pa.default_memory_pool().release_unused()
    return TableCheck(path.name, found.rows, names, flaws(spec, found))


def column_profile(spec: PartyFile, column: str, base: Path = Path()) -> ColumnProfile:
    """What the one ``column`` of the file that ``spec`` describes holds.

    Raises:
        DataError: it is no table, or has no such column.
    """
    kinds = {name: kind for name, kind in spec.encode.items() if name == column}
    alone = PartyFile(file=spec.file, id_column=spec.id_column, columns=(column,), encode=kinds)
    path = base / spec.file
    try:
        with _opened(path) as cells:
            return profile(alone, feature_names(alone, cells.names), cells).columns[0]
    except DataError as error:
        raise DataError(f"{path}: {error}") from error.__cause__


def column_names(path: Path) -> tuple[str, ...]:
    """The names of all columns of the table in ``path``, in its order.

    Raises:
        DataError: it is no table.
    """
    try:
        with _opened(path) as cells:
            return tuple(cells.names)
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from error.__cause__


def write_party_table(table: Table, folder: Path) -> PartyFile:
    """Write ``data.parquet`` into ``folder``; the result reads it back bit by bit with ``base=folder``.

    A numeric label keeps its name, classes are called "label".

    Raises:
        DataError: a column is called "id", "split" or like the label or another, or its bounds are one-sided.
        StorageError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    spec = _description(table)
    data = {"id": strings([name.decode() for name in table.ids.tolist()])}
    data |= {c.name: numbers(table.features[:, j]) for j, c in enumerate(table.columns)}
    if spec.label_column is not None and table.labels is not None:
        is_number, names = table.label is not None, table.class_names
        texts = numbers(table.labels) if is_number else strings([names[k] for k in table.labels])
        data[spec.label_column] = texts
    if table.split is not None:
        data["split"] = strings([SPLITS[k] for k in table.split])
    try:
        pq.write_table(pa.table(data), folder / spec.file)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder / spec.file} ({in_words(error)}): free space or choose another folder"
        ) from error
    return spec


def _description(table: Table) -> PartyFile:
    names = tuple(c.name for c in table.columns)
    label = "label" if table.label is None else table.label.name
    twice = repeated(["id", label, "split", *names])
    if twice is not None:
        raise DataError(f"column {twice!r} has the name of another column: rename it")
    for c in table.columns:
        if (c.low is None) != (c.high is None) or (
            c.low is not None and c.high is not None and c.low >= c.high
        ):
            raise DataError(
                f"column {c.name!r} is bounded by {c.low} and {c.high}: declare both, low below high, or none"
            )
    described = (*table.columns, *([] if table.label is None else [table.label]))
    return PartyFile(
        file=Path("data.parquet"),
        columns=names,
        label_column=None if table.labels is None else label,
        label_kind="classes" if table.label is None else "number",
        classes=table.class_names or None,
        split_column=None if table.split is None else "split",
        bounds={c.name: (c.low, c.high) for c in described if c.low is not None and c.high is not None},
        alphabets={c.name: c.alphabet for c in table.columns if c.alphabet is not None},
        pixels={c.name: c.pixel for c in table.columns if c.pixel is not None},
    )


@contextmanager
def _opened(path: Path) -> Iterator[RawTable]:
    if path.exists() and not path.is_file():  # reading a pipe would wait
        raise DataError("it is no file: name a CSV or parquet file")
    if path.name.endswith((".csv", ".csv.gz")):
        yield _CsvTable(path)
    elif path.name.endswith(".parquet"):
        import pyarrow.parquet as pq

        with _reading():
            file = pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        with file:
            yield _ParquetTable(file)
    else:
        raise DataError(f"suffix {path.suffix!r} is unknown: use .csv, .csv.gz or .parquet")


@contextmanager
def _reading(after: int = 0) -> Iterator[None]:
    """Turn errors of reading a file into sentences; ``after`` rows were read before."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError as error:
        raise DataError("there is no such file: check the path") from error
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:  # the last line: a column's name
        raise DataError(fault(error, _BLOCK_BYTES, after)) from error


class _ParquetTable:
    """See :class:`vflens.tables.reading.RawTable`; column by column, in a third of the memory."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        # pandas also writes the row numbers of a filtered table, and does not read them as a column.
        self.names: Sequence[str] = [n for n in file.schema_arrow.names if not _ROW_NUMBERS.fullmatch(n)]

    def chunks(self, names: Sequence[str]) -> Iterator[tuple[int, str, pa.Array]]:
        for name in names:
            start = 0
            with _reading():
                batches = self._file.iter_batches(_CHUNK_ROWS, columns=[name], use_threads=False)
            for batch in _each(batches):
                # Select by name again: for "a" the library also reads "a.b".
                yield start, name, batch.column(name)
                start += len(batch)

    def are_bytes(self, names: Sequence[str]) -> bool:
        import pyarrow as pa

        schema, metadata = self._file.schema_arrow, self._file.metadata
        if any(schema.field(name).type != pa.uint8() for name in names):
            return False
        wanted = set(names)
        stored = (
            metadata.row_group(i).column(j)
            for i in range(metadata.num_row_groups)
            for j in range(metadata.num_columns)
        )
        found = [chunk.statistics for chunk in stored if chunk.path_in_schema in wanted]
        return all(s is not None and s.has_null_count and s.null_count == 0 for s in found)


class _CsvTable:
    """See :class:`vflens.tables.reading.RawTable`; each call reads the file once, all columns together and as
    text: types guessed from the first rows would fail on later ones.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self._path = path
        with _reading(), pa.input_stream(str(path)) as start:  # of a .csv.gz, what it holds
            if start.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise DataError("it is UTF-16: save it as UTF-8, with commas")
        self._blocks = csv.ReadOptions(block_size=_BLOCK_BYTES)
        self._lines = csv.ParseOptions(newlines_in_values=True)  # a quoted cell may hold several lines
        with _reading(), csv.open_csv(path, self._blocks, self._lines) as file:
            self.names: Sequence[str] = file.schema.names
        if len(self.names) == 1 and any(mark in self.names[0] for mark in ";\t|"):
            raise DataError(f"its header is one column, {self.names[0]!r}: separate columns by commas")

    def chunks(self, names: Sequence[str]) -> Iterator[tuple[int, str, pa.Array]]:
        import pyarrow as pa
        from pyarrow import csv

        options = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=names,
            strings_can_be_null=True,
            null_values=MISSING,
        )
        if not names:  # without names the library reads all
            return
        start = 0
        with _reading():
            file = csv.open_csv(self._path, self._blocks, self._lines, options)
        with file:
            for batch in _each(file):
                for name in names:
                    yield start, name, batch.column(name)
                start += len(batch)

    def are_bytes(self, names: Sequence[str]) -> bool:
        """See :meth:`vflens.tables.reading.RawTable.are_bytes`: a CSV file stores text."""
        return False


def _each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield ``batches``; only errors of reading one become sentences, not errors of their receiver."""
    remaining, rows = iter(batches), 0
    while True:
        with _reading(rows):
            batch = next(remaining, None)
        if batch is None:
            return
        yield batch
        rows += len(batch)
