"""A small table of many columns in parquet: one column holds all numbers of a row, the file's metadata their
names. With a column each, 784 of them take 80 ms to write and to read, however few the rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vflens.errors import DataError
from vflens.storage.arrow import numbers
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN, _NAMES = "vflens.numbers", b"vflens.numbers"  # and the metadata that name them
_FEW, _MOST_CELLS = 64, 1 << 20  # columns that stay apart; numbers that are read at once
_DAMAGED = "its numbers do not fit their names: deal the table anew"


def columns_of(names: Sequence[str], features: Array) -> tuple[dict[str, pa.Array], dict[bytes, str]]:
    """The columns that hold ``features`` (n, d), which are called ``names``, and the file's metadata."""
    import pyarrow as pa

    if len(names) <= _FEW or features.size > _MOST_CELLS:
        return {name: numbers(features[:, j]) for j, name in enumerate(names)}, {}
    rows = np.ascontiguousarray(features)
    kind, data = pa.binary(rows.dtype.itemsize * len(names)), pa.py_buffer(rows)
    return {COLUMN: pa.Array.from_buffers(kind, len(rows), [None, data])}, {_NAMES: json.dumps(names)}


class Packed:
    """The columns that a file packs together, none in those of others; a damaged one is a ``DataError``."""

    def __init__(self, schema: pa.Schema) -> None:
        import pyarrow as pa

        noted = (schema.metadata or {}).get(_NAMES)
        try:
            self.names: tuple[str, ...] = () if noted is None else tuple(map(str, json.loads(noted)))
            kind = schema.field(COLUMN).type if self.names else pa.binary(0)
            self.dtype = np.dtype(np.uint8 if kind == pa.binary(len(self.names)) else np.float64)
            if kind != pa.binary(self.dtype.itemsize * len(self.names)):
                raise TypeError(f"a row is {kind}")
            "".join(self.names).encode()  # half a character has no UTF-8
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(_DAMAGED) from error
        self._place = {name: j for j, name in enumerate(self.names)}

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """That of the file, with a column for each of its names."""
        import pyarrow as pa

        own = _fields(self.names, self.dtype)
        fields = [f for field in stored for f in (own if own and field.name == COLUMN else [field])]
        return pa.schema(fields, metadata=stored.metadata)

    def stored(self, names: Sequence[str]) -> list[str]:
        """The columns of the file that hold ``names``."""
        return list(dict.fromkeys(COLUMN if name in self._place else name for name in names))

    def matrix(self, batch: pa.RecordBatch) -> Array:
        """The numbers (n, d) of all names; read-only."""
        cells = batch.column(COLUMN)
        if cells.null_count:
            raise DataError(_DAMAGED)
        rows = np.frombuffer(cells.buffers()[1] or b"", self.dtype).reshape(-1, len(self.names))
        return rows[cells.offset : cells.offset + len(cells)]

    def apart(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """``batch`` with a column for each of ``names``."""
        import pyarrow as pa

        if self._place.keys().isdisjoint(names):
            return batch
        rows = self.matrix(batch)
        columns = [numbers(rows[:, self._place[n]]) if n in self._place else batch.column(n) for n in names]
        return pa.RecordBatch.from_arrays(columns, names=list(names))


@lru_cache(maxsize=4)  # clients have their columns in common
def _fields(names: Sequence[str], dtype: np.dtype[Any]) -> Sequence[pa.Field]:
    import pyarrow as pa

    return [pa.field(name, pa.from_numpy_dtype(dtype)) for name in names]
