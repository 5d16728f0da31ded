"""Between Arrow and NumPy; Arrow's own conversions load an installed pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa


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
    if present is None:
        return numbers
    bits = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")[own]
    return np.where(bits, numbers, np.nan)


def strings(values: Sequence[str]) -> pa.StringArray:
    """``values`` as Arrow's strings; pa.array would load pandas to test for its series."""
    import pyarrow as pa

    cells = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(cells)))


def numbers(values: Array) -> pa.Array:
    """``values`` (n,) of a numeric type as Arrow's, none missing."""
    import pyarrow as pa

    cells = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, cells])
