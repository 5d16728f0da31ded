"""Reads a party's own CSV, plain or compressed, parquet file or folder of images by its
:class:`PartyFile`.

A refusal of a file that does not fit its description names the column, the row and the remedy. An empty
cell and the words of pandas for a missing one (``NA``, ``n/a``, ``null``, …) are missing; ``?`` and
``unknown`` are text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from vflens.errors import DataError, StorageError
from vflens.names import repeated
from vflens.storage.arrow import numbers, strings, texts_of
from vflens.storage.json_file import in_words
from vflens.storage.regular import sha256
from vflens.tables.cells import TableFile, of_file
from vflens.tables.description import PartyFile
from vflens.tables.image_folder import read_images
from vflens.tables.own_check.flaw import Flaw, TableCheck
from vflens.tables.own_check.flaws import flaws, is_sound, of_column
from vflens.tables.own_check.profile import ColumnProfile, TableProfile, profile
from vflens.tables.reading import SPLITS, WholeColumns, feature_names, table_of
from vflens.tables.table import Table
from vflens.tables.written.packed import COLUMN, columns_of


def read_party_table(spec: PartyFile, base: Path = Path()) -> Table:
    """The table that ``spec`` describes; a relative ``spec.file`` is relative to ``base``.

    Raises:
        DataError: the file or one of its values is not as described; the message names it and the remedy.
    """
    path = base / spec.file
    with _freed(path):
        return read_images(spec, path) if path.is_dir() else table_of(spec, opened(spec, path))


def opened(spec: PartyFile, path: Path) -> TableFile:
    """The cells in ``path``, written as ``spec`` says."""
    return TableFile(path, **written_as(spec))


def written_as(spec: PartyFile) -> dict[str, Any]:
    """How the file of ``spec`` is written, by the arguments of :class:`vflens.tables.cells.TableFile`."""
    measured = {name for name, kind in spec.encode.items() if kind.partition(":")[0] == "number"}
    return {**spec.model_dump(include={"delimiter", "encoding", "header", "empty"}), "measured": measured}


def digest_of(file: Path) -> dict[str, str]:
    """``file`` by its name, and its ``sha256``; {} of a folder and of what cannot be read."""
    try:
        return {} if file.is_dir() else {"file": file.name, "sha256": sha256(file)}
    except OSError:
        return {}


def check_party_table(
    spec: PartyFile,
    base: Path = Path(),
    see: Callable[[ColumnProfile], None] = lambda column: None,
    ids: TableProfile | None = None,
) -> TableCheck | None:
    """What is to be mended in the file that ``spec`` describes, all at once; None of a folder of images.

    ``see`` gets each column that needs no other reading: see
    :func:`vflens.tables.own_check.flaws.is_sound`. ``ids`` is what an earlier reading found of the ids.

    Raises:
        DataError: it is no table, or a column is absent.
    """
    path = base / spec.file
    if path.is_dir():
        return None
    with _freed(path):
        cells = opened(spec, path)
        names = feature_names(spec, cells.names)
        tries, of_columns = WholeColumns(cells), {name: list[Flaw]() for name in names}

        def done(column: ColumnProfile) -> None:
            own = [*of_column(spec, column, tries, cells.nameless)]
            of_columns[column.name] = own
            if not own and is_sound(spec, column):
                see(column)
            column.forget()

        found = profile(spec, names, cells, done, ids)
        return TableCheck(
            path.name, found.rows, names, flaws(spec, found, tries, chain.from_iterable(of_columns.values()))
        )


def column_profile(spec: PartyFile, column: str, base: Path = Path()) -> ColumnProfile:
    """What the one ``column`` of the file that ``spec`` describes holds.

    Raises:
        DataError: it is no table, or has no such column.
    """
    own = {field: _only(getattr(spec, field), column) for field in ("encode", "empty")}
    kept = spec.model_dump(include={"file", "id_column", "delimiter", "encoding", "header"})
    alone = PartyFile(columns=(column,), **kept, **own)
    path = base / spec.file
    with _freed(path):
        cells = opened(spec, path)
        return profile(alone, feature_names(alone, cells.names), cells).columns[0]


def column_names(path: Path) -> tuple[str, ...]:
    """The names of all columns of the table in ``path``, in its order.

    Raises:
        DataError: it is no table.
    """
    with of_file(Path(path.name)):
        return tuple(TableFile(path).names)


def _only(settings: Mapping[str, Any], column: str) -> dict[str, Any]:
    return {name: setting for name, setting in settings.items() if name == column}


@contextmanager
def _freed(path: Path) -> Iterator[None]:
    """See :func:`of_file`; afterwards Arrow gives its memory back, as much as the file for later use."""
    import pyarrow as pa

    with of_file(path):
        yield
    pa.default_memory_pool().release_unused()


def write_party_table(table: Table, folder: Path) -> PartyFile:
    """Write ``data.parquet`` into ``folder``; the result reads it back bit by bit with ``base=folder``.

    A numeric label keeps its name, classes are called "label".

    Raises:
        DataError: a column is called "id", "split" or like the label or another, or its bounds are one-sided.
        StorageError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    spec = _description(table)
    columns, noted = columns_of([c.name for c in table.columns], table.features)
    data = {"id": texts_of(table.ids), **columns}
    if spec.label_column is not None and table.labels is not None:
        is_number, names = table.label is not None, table.class_names
        texts = numbers(table.labels) if is_number else strings(names).take(numbers(table.labels))
        data[spec.label_column] = texts
    if table.split is not None:
        data["split"] = strings(SPLITS).take(numbers(table.split))
    try:
        texts = [name for name, cells in data.items() if pa.types.is_string(cells.type)]
        # Columns of few numbers gain nothing from a dictionary each, which takes longer than they do.
        pq.write_table(pa.table(data, metadata=noted), folder / spec.file, use_dictionary=texts)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder / spec.file} ({in_words(error)}): free space or choose another folder"
        ) from error
    return spec


def _description(table: Table) -> PartyFile:
    names = tuple(c.name for c in table.columns)
    label = "label" if table.label is None else table.label.name
    twice = repeated(["id", label, "split", COLUMN, *names])
    if twice is not None:
        raise DataError(f"column {twice!r} has the name of another column: rename it")
    for c in table.columns:
        if (c.low is None) != (c.high is None) or (
            c.low is not None and c.high is not None and c.low >= c.high
        ):
            raise DataError(
                f"column {c.name!r} is bounded by {c.low} and {c.high}: declare both, low below high, or none"
            )
    described = (*table.columns, *([] if table.label is None else [table.label]))
    return PartyFile(
        file=Path("data.parquet"),
        columns=names,
        label_column=None if table.labels is None else label,
        label_kind="classes" if table.label is None else "number",
        classes=table.class_names or None,
        split_column=None if table.split is None else "split",
        bounds={c.name: (c.low, c.high) for c in described if c.low is not None and c.high is not None},
        alphabets={c.name: c.alphabet for c in table.columns if c.alphabet is not None},
        pixels={c.name: c.pixel for c in table.columns if c.pixel is not None},
    )
