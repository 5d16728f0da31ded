"""Released tables as files, block by block, and all files of a release at once or none."""

import csv as text_csv
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from vflens.errors import StorageError
from vflens.storage.arrow import as_shown, formulas, strings
from vflens.storage.json_file import in_words
from vflens.tables.cells import SUFFIXES, suffix


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class TableSink:
    """Writes blocks of columns as CSV or parquet, by the suffix of ``path``.

    Floats have as many digits, up to 17, as reading them back bit for bit needs. ``formulas`` counts the
    names and texts that a spreadsheet would run; ``excel_safe`` puts an apostrophe before each.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, quoted: bool, excel_safe: bool) -> None:
        self._schema, kind = schema, suffix(path)
        self._safe, self.formulas = excel_safe, 0
        self._file: Any = pa.OSFile(str(path), "wb")
        if kind == ".parquet":
            self._writer: _Writer = pq.ParquetWriter(self._file, schema)
            return
        if SUFFIXES[kind]:
            self._file = pa.CompressedOutputStream(self._file, SUFFIXES[kind])
        self._file.write(_header(self._text(strings(schema.names)).to_pylist()))
        options = csv.WriteOptions(include_header=False, quoting_style="needed" if quoted else "none")
        self._writer = csv.CSVWriter(self._file, schema, write_options=options)

    def write(self, columns: Sequence[pa.Array]) -> None:
        """Append a block; ``columns`` in the order of the schema."""
        written = [self._text(c) if pa.types.is_string(c.type) else c for c in columns]
        self._writer.write_batch(pa.record_batch(written, schema=self._schema))

    def _text(self, column: pa.Array) -> pa.Array:
        """A column of text for the file."""
        self.formulas += pc.sum(formulas(column)).as_py() or 0
        return as_shown(column) if self._safe else column

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._file.close()


def _header(names: Sequence[str]) -> bytes:
    line = io.StringIO()
    text_csv.writer(line).writerow(names)  # with "\n" as its end it would not quote a carriage return
    return f"{line.getvalue()[:-2]}\n".encode()


@contextmanager
def replacing(files: Sequence[Path]) -> Iterator[list[Path]]:
    """A temporary file beside each of ``files``, for the owner only; after success each replaces its file, in
    order.

    Raises:
        StorageError: the folder cannot be written.
    """
    temporary: list[Path] = []
    try:
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=file.parent, prefix=".release-", suffix=f"-{file.name}")
            os.close(handle)
            temporary.append(Path(name))
        yield temporary
        for source, file in zip(temporary, files, strict=True):
            source.replace(file)
    except OSError as error:
        raise StorageError(
            f"{files[0].parent} cannot be written ({in_words(error)}): free space, or choose another --out"
        ) from error
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)
