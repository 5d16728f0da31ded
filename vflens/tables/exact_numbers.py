"""What both readers of tables share, a party's and a release's: missing cells, and refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import DataError
from vflens.storage.arrow import in_numpy
from vflens.types import Array
from vflens.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

#: Cells of a CSV file that are missing: those of pandas.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_EXACT = 2.0**53  # float64 holds every integer up to here
_WIDTH = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_INTEGER = r"^\s*[+-]?[0-9]{16,}\s*$"  # 2^53 has 16 digits


def as_floats(cells: pa.Array) -> Array:
    """Text or numbers as float64 (n,), NaN where missing; an integer beyond 2^53 is rounded, see
    :func:`refuse_rounded`.

    Raises:
        pyarrow.ArrowException: a cell is no number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    with suppress(pa.ArrowException):
        return in_numpy(cells)  # mostly nothing is to be trimmed
    return in_numpy(pc.utf8_trim_whitespace(cells) if is_text(cells.type) else cells)  # "1, 2": two numbers


def as_text(name: str, cells: pa.Array) -> pa.Array:
    """Any cells of the column ``name`` as strings; null stays null.

    Raises:
        DataError: they are lists, records, or bytes that are no text.
    """
    import pyarrow as pa

    try:
        return cells.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(
            f"column {name!r} holds {cells.type}, which is no text: write it as text or numbers"
        ) from error


def beyond_exact(numbers: Array) -> bool:
    """Whether ``numbers`` float64 (n,), NaN where missing, hold one that may be a rounded integer."""
    return bool((np.abs(numbers) >= _EXACT).any())


def refuse_rounded(name: str, cells: pa.Array, first: int, also: str = "") -> None:
    """Refuse an integer that float64 cannot hold: two values of a column would silently become one.

    Decimal fractions and exponents are measurements, read as the nearest float64.

    Args:
        name: of the column.
        cells: (n,) text or numbers.
        first: the data row of the first cell, counted from 0.
        also: another remedy, behind the others.

    Raises:
        DataError: names column and row; the cell is the owner's to see.
    """
    import pyarrow as pa

    at = np.flatnonzero(large_integers(cells))
    found = cells.take(pa.array(at))
    for row, cell, number in zip(at + first + 1, found.to_pylist(), as_floats(found), strict=True):
        if Decimal(cell) != Decimal(float(number)):
            raise DataError(
                f"column {name!r} holds an integer in data row {row} that float64 rounds: leave the column "
                "out, or if rounding does no harm store it as floating-point numbers (in a CSV with a "
                f"decimal point){also}",
                shown=[f"{str(cell).strip()} becomes {number:.0f}"],
            )


@contextmanager
def reading(block_bytes: int = 1 << 20, after: int = 0) -> Iterator[None]:
    """Turn errors of reading a file into sentences; ``after`` rows were read before."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError as error:
        raise DataError("there is no such file: check the path") from error
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:  # the last one: a column's name
        raise DataError(fault(error, block_bytes, after)) from error


def fault(error: Exception, block_bytes: int, after: int) -> str:
    """What pyarrow's ``error`` means, in our words: its own hold whole rows of the file.

    Args:
        error: of the reading.
        block_bytes: size of a block.
        after: number of data rows read before.
    """
    text = str(error)
    if "straddl" in text:
        place = f"data row {after}" if after else "the header"
        return (
            f"a row after {place} is longer than {counted(block_bytes, 'byte', ',')}: close its quotes, "
            "or shorten its longest cell"
        )
    if "Empty CSV file" in text or "cannot infer number of columns" in text:
        return (
            f"its header is empty or longer than {counted(block_bytes, 'byte', ',')}: "
            "begin the file with one line of column names"
        )
    if width := _WIDTH.search(text):
        place = f"data row {int(width[1]) - 1}" if width[1] else f"a row after data row {after}"
        if int(width[2]) == 1:
            return (
                f"its header is one column, but {place} has {counted(int(width[3]), 'cell')}: "
                "separate columns by commas, write decimals with a point or in quotes, and begin the file "
                "with the names of columns: no title above them"
            )
        return (
            f"{place} has {counted(int(width[3]), 'cell')}, the header {counted(int(width[2]), 'name')}: "
            "give both the same, and put quotes around a cell with a comma"
        )
    if isinstance(error, UnicodeDecodeError) or "UTF8" in text:
        return "it holds text that is not UTF-8: save it in that encoding"
    return "it cannot be read: check that it is whole, and what its suffix says"


def large_integers(cells: pa.Array) -> Array:
    """Which cells are integers that may exceed 2^53, bool (n,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type
    if is_text(kind):
        large: Array = in_numpy(pc.match_substring_regex(cells, _INTEGER)) == 1
        return large
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale <= 0):
        return np.abs(as_floats(cells)) >= _EXACT
    return np.zeros(len(cells), bool)


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
