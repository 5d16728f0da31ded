"""Between Arrow and NumPy, and from parquet files; Arrow's own conversions load an installed pandas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vflens.storage.regular import opened
from vflens.types import Array
from vflens.words import counted

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: The key under which the metadata of a sweep's table keep the rows, as JSON, that have no figure.
REFUSED = "refused"
#: What is read of another party's metrics: half a million steps with a detector, 8 million column figures.
_MOST_FIGURES, _MOST_VALUES, _MOST_BYTES = 1 << 19, 1 << 23, 1 << 28

_FORMULA = r"^[=+\-@\t\r]"  # first characters of a text that a spreadsheet runs, unless it is a number
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def in_numpy(cells: pa.Array | pa.ChunkedArray) -> Array:
    """Numbers or truth values as float64 (n,), NaN where missing; Arrow's conversion would load pandas.

    Raises:
        pyarrow.ArrowException: a cell is no number.
    """
    import pyarrow as pa

    cells = cells.cast(pa.float64(), safe=False)
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    present, values = cells.buffers()
    if not len(cells):
        return np.zeros(0)
    own = slice(cells.offset, cells.offset + len(cells))
    numbers: Array = np.frombuffer(values)[own]
    if present is None or not cells.null_count:
        return numbers
    bits = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")[own]
    return np.where(bits, numbers, np.nan)


def bytes_of(cells: pa.Array) -> Array:
    """Unsigned 8-bit integers, none missing, as uint8 (n,)."""
    _, values = cells.buffers()
    return np.frombuffer(values or b"", np.uint8)[cells.offset : cells.offset + len(cells)]


def strings(values: Sequence[str]) -> pa.StringArray:
    """``values`` as Arrow's strings; pa.array would load pandas to test for its series."""
    import pyarrow as pa

    cells = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(cells)))


def texts_of(cells: Array) -> pa.StringArray:
    """NumPy's bytes ``cells`` (n,), UTF-8, as Arrow's strings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, packed = pa.binary(cells.dtype.itemsize), pa.py_buffer(np.ascontiguousarray(cells))
    padded = pa.Array.from_buffers(kind, len(cells), [None, packed]).cast(pa.binary()).cast(pa.string())
    return pc.ascii_rtrim(padded, "\0")


def in_bytes(texts: pa.ChunkedArray) -> Array:
    """Arrow's strings, none missing, as NumPy's bytes (n,) in UTF-8."""
    import pyarrow.compute as pc

    width = pc.max(pc.binary_length(texts)).as_py() or 1
    cells = np.zeros(len(texts), f"S{width}")
    start = 0
    for part in filter(len, texts.chunks):  # a few at a time
        padded = pc.ascii_rpad(part, width, "\0").buffers()[2]
        cells[start : start + len(part)] = np.frombuffer(padded, cells.dtype, len(part))
        start += len(part)
    return cells


def numbers(values: Array) -> pa.Array:
    """``values`` (n,) of a numeric type as Arrow's, none missing."""
    import pyarrow as pa

    cells = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, cells])


def parquet_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a small parquet ``file``.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    rows: list[dict[str, Any]] = parquet_table(file).to_pylist()
    return rows


def parquet_table(file: Path, *, limited: bool = False) -> pa.Table:
    """The table in a small parquet ``file``, read in this thread.

    pq.read_table would start Arrow's threads and load its reader of data sets.

    Args:
        file: such as metrics.
        limited: it may be another party's metrics. Few bytes can say a million times the same.

    Raises:
        OSError, ValueError: it cannot be read, or is larger in memory than metrics are.
    """
    import pyarrow as pa

    try:
        return _parquet_table(file, limited=limited)
    except (pa.ArrowException, KeyError) as error:  # of a damaged file it may also be an IndexError
        raise ValueError(str(error)) from error


def _parquet_table(file: Path, *, limited: bool) -> pa.Table:
    import pyarrow.parquet as pq

    with opened(file) as stream:
        facts = pq.read_metadata(stream)
        texts = _texts(facts) if limited else []
        with pq.ParquetFile(stream, metadata=facts, pre_buffer=False, read_dictionary=texts) as parquet:
            table = parquet.read(use_threads=False)
    for name in texts:
        _check_texts(name, table[name])
    return table


def _texts(facts: pq.FileMetaData) -> list[str]:
    """The columns of text in a file whose footer announces no more than metrics have.

    Raises:
        ValueError: it announces more, or texts in lists.
    """
    groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(group.num_columns)]
    limits = (
        (max(facts.num_rows, sum(group.num_rows for group in groups)), _MOST_FIGURES, "rows"),
        (sum(c.num_values for c in columns if "." in c.path_in_schema), _MOST_VALUES, "figures of columns"),
        (sum(c.total_uncompressed_size for c in columns), _MOST_BYTES, "bytes"),
    )
    for found, most, what in limits:
        if found > most:
            raise ValueError(f"it announces {found:,} {what}, metrics have at most {most:,}")
    texts = {c.path_in_schema for c in columns if c.physical_type.endswith("BYTE_ARRAY")}
    if odd := sorted(name for name in texts if "." in name):
        raise ValueError(f"{odd[0]} has lists of texts, metrics have lists of numbers")
    return sorted(texts)


def _check_texts(name: str, column: pa.ChunkedArray) -> None:
    """Refuse texts that take more memory row by row than in the file, where each stands once."""
    kept = (getattr(chunk, "dictionary", chunk) for chunk in column.chunks)
    longest = max((len(text or "") for texts in kept for text in texts.to_pylist()), default=0)
    if longest * len(column) > _MOST_BYTES:
        raise ValueError(
            f"{name} has texts of {counted(longest, 'character', ',')} in {counted(len(column), 'row', ',')}"
        )


def as_shown(column: pa.Array) -> pa.Array:
    """Texts with an apostrophe before each that a spreadsheet would run: it then shows the text."""
    import pyarrow.compute as pc

    return pc.if_else(formulas(column), pc.binary_join_element_wise("'", column, ""), column)


def formulas(column: pa.Array) -> pa.Array:
    """Whether a spreadsheet would run each text, bool (n,)."""
    import pyarrow.compute as pc

    number = pc.match_substring_regex(column, _NUMBER)
    return pc.and_(pc.match_substring_regex(column, _FORMULA), pc.invert(number))
