"""The types of cells that parquet files hold, as the few that this package reads: text, numbers, times."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from vflens.storage.arrow import in_numpy
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

_A_DAY = {"s": 86_400.0, "ms": 86_400e3, "us": 86_400e6}


def as_plain(cells: pa.Array) -> pa.Array:
    """``cells`` without dictionaries, extensions, views and half precision; bytes that are UTF-8 as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, of = cells.type, pa.types
    if of.is_primitive(kind):  # most columns, of which there may be thousands
        return cells.cast(pa.float32()) if of.is_float16(kind) else cells
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return pa.array([None if uuid is None else str(uuid) for uuid in cells.to_pylist()], pa.string())
        return as_plain(cells.storage)
    if of.is_dictionary(kind) or of.is_run_end_encoded(kind):
        packed = of.is_dictionary(kind)
        return as_plain(cells.dictionary_decode() if packed else pc.run_end_decode(cells))
    tests = (of.is_large_string, of.is_string_view, of.is_binary, of.is_large_binary, of.is_binary_view)
    if any(test(kind) for test in (*tests, of.is_fixed_size_binary)):
        with suppress(pa.ArrowInvalid):
            return cells.cast(pa.string())
    return cells


def unpacked_bytes(texts: pa.DictionaryArray) -> int:
    """The memory of ``texts`` once they are spelt out."""
    import pyarrow.compute as pc

    widths = pc.binary_length(texts.dictionary).take(texts.indices)
    return 8 * len(texts) + int(pc.sum(widths).as_py() or 0)


def kind_of_times(kind: pa.DataType) -> str:
    """What reads cells of this type as days: "date", or "number" of durations and times of day; else ""."""
    import pyarrow as pa

    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return "number" if pa.types.is_duration(kind) or pa.types.is_time(kind) else ""


def days(cells: pa.Array) -> Array:
    """Dates and timestamps as days since 1970, durations and times of day as days; float64 (n,), NaN where
    missing. Nanoseconds are cut to microseconds, which float64 holds today.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type
    count = cells.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_date32(kind):
        return in_numpy(count)
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    if unit == "ns":
        unit, count = "us", pc.divide(count, 1000)
    return in_numpy(count) / _A_DAY[unit]
