"""Data frames in and out by way of Arrow: pandas, polars, Arrow, or a mapping from names to arrays."""

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from vflens.errors import DataError


def as_arrow(frame: Any) -> pa.Table:
    """The table in ``frame``, with text as ``string``; the index of a pandas frame is left out.

    Args:
        frame: a pandas or polars frame, an Arrow table, any other object with ``__arrow_c_stream__``, or a
            mapping from column names to arrays (n,).

    Raises:
        DataError: it is none of them, or its columns differ in length.
    """
    try:
        if isinstance(frame, Mapping):
            table = pa.table(dict(frame))
        elif _is_of("pandas", frame):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            table = pa.table(frame)
        plain = pa.table({name: _plain(table[name]) for name in table.column_names})
        return plain.replace_schema_metadata(table.schema.metadata)  # names the index that pandas wrote
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"a frame of type {type(frame).__name__} cannot be read as a table: give a pandas, "
            "polars or Arrow table, or a mapping from column names to arrays of one length"
        ) from error


def like(table: pa.Table, frame: Any) -> Any:
    """``table`` in the kind of ``frame``; Arrow for a kind that is not known.

    A pandas frame numbers its rows anew: an index may hold who they are.
    """
    if isinstance(frame, Mapping):
        return {name: table[name].to_numpy() for name in table.column_names}
    if _is_of("pandas", frame):
        return table.to_pandas()
    if _is_of("polars", frame):
        return sys.modules["polars"].from_arrow(table)
    return table


def numbered(table: pa.Table) -> tuple[pa.Table, str]:
    """``table`` with its rows numbered in one more column, and the name of that column."""
    name = "row"
    while name in table.column_names:
        name += "_"
    return table.append_column(name, pa.array(range(table.num_rows), pa.int64())), name


def _is_of(package: str, frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == package


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as ``string``, categories as their values. Arrow cannot take polars' views of text by index."""
    if pa.types.is_dictionary(column.type):
        kind = _plain_type(column.type.value_type)
        return pa.chunked_array([c.dictionary.cast(kind).take(c.indices) for c in column.chunks], kind)
    return column.cast(_plain_type(column.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if text else kind
