"""A party's own file: CSV (``.csv``, ``.csv.gz``) or parquet, described by a :class:`PartyFile`.

Nothing is guessed from the values: a column is numbers, or ``encode`` says how its text becomes numbers
and a file that does not fit its description is refused with the column, the row and the remedy. An empty
cell, ``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL`` and ``null`` are missing; ``?`` and ``unknown`` are text.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from vfl.cells import SPLITS, repeated, table_of
from vfl.errors import DataError, StorageError
from vfl.table import Table
from vfl.types import MAX_PIXEL

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")


_Place = Annotated[int, Field(ge=0, le=MAX_PIXEL)]


class PartyFile(BaseModel):
    """What a party's file holds. Bounds, alphabets and pixels are public metadata of its columns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Path = Field(description="CSV, .csv.gz or parquet")
    id_column: str = Field("id", description="identifies a row at all parties; unique")
    columns: tuple[str, ...] | None = Field(
        None, description="features; default: all but id, label and split"
    )
    label_column: str | None = None
    classes: tuple[str, ...] | None = Field(None, description="labels in their order; default: sorted")
    split_column: str | None = Field(None, description='holds "train" or "predict"')
    bounds: dict[str, tuple[FiniteFloat, FiniteFloat]] = Field({}, description="[low, high] of a column")
    alphabets: dict[str, tuple[FiniteFloat, ...]] = Field({}, description="the values that a column can take")
    pixels: dict[str, tuple[_Place, _Place]] = Field(
        {}, description="[row, column] of a column that is a pixel"
    )
    encode: dict[str, Literal["ordinal", "one_hot"]] = Field({}, description="columns of text")
    categories: dict[str, tuple[str, ...]] = Field(
        {}, description="of encoded columns; default: those found, sorted"
    )
    missing: Literal["refuse", "drop_row", "mean"] = Field("refuse", description="mean: of the training rows")

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> PartyFile:
        special = [
            name for name in (self.id_column, self.label_column, self.split_column) if name is not None
        ]
        twice = repeated([*special, *(self.columns or ())])
        if twice is not None:
            raise ValueError(
                f"column {twice!r} is named twice among id_column, label_column, split_column and columns"
            )
        return self

    @model_validator(mode="after")
    def _metadata_fits(self) -> PartyFile:
        for name, (low, high) in self.bounds.items():
            if not low < high:
                raise ValueError(f"bounds.{name} = [{low}, {high}]: the first must be below the second")
            if not math.isfinite(high - low):
                raise ValueError(f"bounds.{name} = [{low}, {high}]: no number is as large as their distance")
        for name in self.encode:
            if name in {*self.bounds, *self.alphabets, *self.pixels}:
                raise ValueError(
                    f"encode.{name}: an encoded column has its codes for bounds and alphabet, declare none"
                )
        for name in self.categories:
            if name not in self.encode:
                raise ValueError(f"categories.{name}: set encode.{name} too")
        return self

    @model_validator(mode="after")
    def _classes_fit(self) -> PartyFile:
        if self.classes is not None and self.label_column is None:
            raise ValueError("classes are declared without label_column: name the column that holds them")
        named = {"classes": self.classes or ()} | {f"categories.{n}": c for n, c in self.categories.items()}
        for what, names in named.items():
            if repeated(names) is not None:
                raise ValueError(f"{what} names {repeated(names)!r} twice")
        return self


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
