"""Numbers of a run, one row each, in ``metrics.parquet``; rewritten whole: no reader sees half a file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vflens.errors import StorageError
from vflens.storage.arrow import strings
from vflens.storage.files import write_whole
from vflens.storage.regular import opened
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of the largest matrix in the metrics, which keep a figure for each pair.
MOST_ROWS = 64
_KEY = ("metric", "attack", "adversary", "target", "scored_set", "column", "rows", "step")


class Metrics:
    """A party's metrics, added to those in ``file``: metric, value (float64) and the labels attack, adversary
    (its party), target, scored_set, column, rows, step. ``values`` has a figure for each of the target's
    columns where they are pixels: ``value`` is then their mean.

    A figure with the metric and the labels of an earlier one takes its place: after a restart a party repeats
    what it had not finished.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: list[dict[str, Any]] = []
        self._places: dict[tuple[Any, ...], int] = {}
        self._lock = threading.Lock()
        for row in _read(file) if file.exists() else []:
            self._put(row)

    def add(
        self,
        metric: str,
        value: float,
        *,
        attack: str = "",
        adversary: str = "",
        target: str = "",
        scored_set: str = "",
        column: str = "",
        rows: int = 0,
        step: int = 0,
        values: Sequence[float] = (),
    ) -> None:
        """Add one number, in memory; it replaces an earlier one with the same labels."""
        row = {"metric": metric, "value": float(value), "attack": attack, "adversary": adversary}
        row |= {"target": target, "scored_set": scored_set, "column": column, "rows": rows, "step": step}
        row["values"] = values
        with self._lock:
            self._put(row)

    def _put(self, row: dict[str, Any]) -> None:
        place = self._places.setdefault(tuple(row[name] for name in _KEY), len(self._rows))
        self._rows[place : place + 1] = [row]

    def add_columns(self, metric: str, values: Array, **labels: Any) -> None:
        """Add a figure for each of the target's columns: ``values`` (d,), in their order, as one row."""
        self.add(metric, float(values.mean()), values=values.tolist(), **labels)

    def add_matrix(self, metric: str, matrix: Array, **labels: Any) -> None:
        """Add a symmetric matrix (k, k), k ≤ :data:`MOST_ROWS`: its upper triangle, ``column`` "i,j"."""
        if len(matrix) > MOST_ROWS:
            return
        for i, j in zip(*np.triu_indices(len(matrix)), strict=True):
            self.add(metric, matrix[i, j], column=f"{i},{j}", **labels)

    def last(self, metric: str) -> float | None:
        """The last figure called ``metric``, or None."""
        with self._lock:
            return next((r["value"] for r in reversed(self._rows) if r["metric"] == metric), None)

    def save(self) -> None:
        """Write all figures.

        Raises:
            StorageError: the file cannot be written; an earlier one stays.
        """
        import pyarrow.parquet as pq

        written = BytesIO()
        with self._lock:
            pq.write_table(_table(self._rows), written)
            write_whole(self._file, written.getvalue(), remedy="another `out`; earlier results are kept")


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    def numbers(values: Array, kind: pa.DataType) -> pa.Array:
        # pa.array of an array would import pandas.
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])

    columns = {
        "metric": strings([row["metric"] for row in rows]),
        "value": numbers(np.array([row["value"] for row in rows], np.float64), pa.float64()),
    }
    for name in ("attack", "adversary", "target", "scored_set", "column"):
        columns[name] = strings([row[name] for row in rows])
    for name in ("rows", "step"):
        columns[name] = numbers(np.array([row[name] for row in rows], np.int64), pa.int64())
    ends = np.cumsum([0, *(len(row["values"]) for row in rows)]).astype(np.int32)
    joined = np.concatenate([np.zeros(0), *(row["values"] for row in rows if row["values"])])
    columns["values"] = pa.ListArray.from_arrays(numbers(ends, pa.int32()), numbers(joined, pa.float64()))
    return pa.table(columns)


def parquet_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a small parquet ``file``, read in this thread.

    pq.read_table would start Arrow's threads and load its reader of data sets.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    import pyarrow.parquet as pq

    with opened(file) as stream, pq.ParquetFile(stream, pre_buffer=False) as parquet:
        rows: list[dict[str, Any]] = parquet.read(use_threads=False).to_pylist()
    return rows


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        return [{"values": [], **row} for row in parquet_rows(file)]
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} is no readable metrics file ({error}): move it away") from error
