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
    import pyarrow.parquet as pq

#: Rows of the largest matrix in the metrics, which keep a figure for each pair.
MOST_ROWS = 64
#: What is read of another party's metrics: half a million steps with a detector, 8 million column figures.
_MOST_FIGURES, _MOST_VALUES, _MOST_BYTES = 1 << 19, 1 << 23, 1 << 28
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


def parquet_rows(file: Path, *, limited: bool = False) -> list[dict[str, Any]]:
    """The rows of a small parquet ``file``, read in this thread.

    pq.read_table would start Arrow's threads and load its reader of data sets.

    Args:
        file: of metrics.
        limited: it may be another party's. Few bytes can say a million times the same.

    Raises:
        OSError, ValueError: it cannot be read, or is larger in memory than metrics are.
    """
    import pyarrow.parquet as pq

    with opened(file) as stream:
        facts = pq.read_metadata(stream)
        texts = _texts(facts) if limited else []
        with pq.ParquetFile(stream, metadata=facts, pre_buffer=False, read_dictionary=texts) as parquet:
            table = parquet.read(use_threads=False)
    for name in texts:
        _check_texts(name, table[name])
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


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
    """Refuse texts that take more memory row by row than in the file, where each stands once.

    Raises:
        ValueError: of the column ``name``.
    """
    kept = (getattr(chunk, "dictionary", chunk) for chunk in column.chunks)
    longest = max((len(text or "") for texts in kept for text in texts.to_pylist()), default=0)
    if longest * len(column) > _MOST_BYTES:
        raise ValueError(f"{name} has texts of {longest:,} characters in {len(column):,} rows")


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        return [{"values": [], **row} for row in parquet_rows(file)]
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} is no readable metrics file ({error}): move it away") from error
