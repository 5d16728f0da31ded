"""A party's own file, CSV (``.csv``, ``.csv.gz``) or parquet, read as its :class:`PartyFile` describes it.

A file that does not fit its description is refused with the column, the row and the remedy. An empty
cell, ``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL`` and ``null`` are missing; ``?`` and ``unknown`` are text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vfl.cells import SPLITS, table_of
from vfl.errors import DataError, StorageError
from vfl.names import repeated
from vfl.partyfile import PartyFile
from vfl.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")


def read_party_table(spec: PartyFile, base: Path = Path()) -> Table:
    """The table that ``spec`` describes; a relative ``spec.file`` is relative to ``base``.

    Raises:
        DataError: the file or one of its values is not as described: the sentence says which and what to do.
    """
    import pyarrow as pa

    path = base / spec.file
    try:
        table = table_of(spec, _load(path))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error.__cause__
    pa.default_memory_pool().release_unused()  # else as much as the file again is kept for a next one
    return table


def write_party_table(table: Table, folder: Path) -> PartyFile:
    """Write ``data.parquet`` into ``folder``; the result reads it back bit by bit with ``base=folder``.

    Raises:
        DataError: a column is called "id", "label" or "split" or like another, or its bounds are one-sided.
        StorageError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    spec = _description(table)
    data = {"id": table.ids}
    data |= {c.name: table.features[:, j] for j, c in enumerate(table.columns)}
    if table.labels is not None:
        data["label"] = np.array(table.class_names)[table.labels]
    if table.split is not None:
        data["split"] = np.array(SPLITS)[table.split]
    try:
        pq.write_table(
            pa.table({name: pa.array(values) for name, values in data.items()}), folder / spec.file
        )
    except OSError as error:
        raise StorageError(f"cannot write {folder / spec.file}: {error}") from error
    return spec


def _description(table: Table) -> PartyFile:
    names = tuple(c.name for c in table.columns)
    twice = repeated(["id", "label", "split", *names])
    if twice is not None:
        raise DataError(f"column {twice!r} has the name of another column: rename it")
    for c in table.columns:
        if (c.low is None) != (c.high is None) or (
            c.low is not None and c.high is not None and c.low >= c.high
        ):
            raise DataError(
                f"column {c.name!r} is bounded by {c.low} and {c.high}: declare both, low below high, or none"
            )
    return PartyFile(
        file=Path("data.parquet"),
        columns=names,
        label_column=None if table.labels is None else "label",
        classes=None if table.labels is None else table.class_names,
        split_column=None if table.split is None else "split",
        bounds={c.name: (c.low, c.high) for c in table.columns if c.low is not None and c.high is not None},
        alphabets={c.name: c.alphabet for c in table.columns if c.alphabet is not None},
        pixels={c.name: c.pixel for c in table.columns if c.pixel is not None},
    )


def _load(path: Path) -> pa.Table:
    import pyarrow as pa

    try:
        if path.name.endswith((".csv", ".csv.gz")):
            return _load_csv(path)
        if path.name.endswith(".parquet"):
            import pyarrow.parquet as pq

            with pq.ParquetFile(path, pre_buffer=False) as file:
                names = file.schema_arrow.names  # one by one: all at once takes three times their memory
                if repeated(names) is not None:  # refused for it by whoever asked
                    return file.read()
                # By name once more: asked for "a", the library also reads "a.b".
                columns = [file.read(columns=[name], use_threads=False).column(name) for name in names]
                return pa.Table.from_arrays(columns, names)
    except FileNotFoundError as error:
        raise DataError("there is no such file: check the path") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"it cannot be read ({error}): check that it is whole, UTF-8, and what its suffix says"
        ) from error
    raise DataError(f"suffix {path.suffix!r} is unknown: use .csv, .csv.gz or .parquet")


def _load_csv(path: Path) -> pa.Table:
    """All columns as text: types guessed from the first rows would fail on later ones."""
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as file:
        names = file.schema.names
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=MISSING
    )
    return csv.read_csv(path, convert_options=options)
