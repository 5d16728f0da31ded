"""A party's description of its own file. Values do not decide the type of a column: it holds numbers, or
``encode`` states how its text becomes numbers.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from vflens.errors import DataError
from vflens.names import repeated
from vflens.tables.encodings import MOST_CATEGORIES, checked_kind, is_categorical
from vflens.tables.pixels import too_wide
from vflens.types import MAX_PIXEL, ColumnInfo, LabelKind

Kind = Annotated[str, AfterValidator(checked_kind)]


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(f"{name!r} is no encoding of text: give utf-8, cp1252 or another one") from None


_Place = Annotated[int, Field(ge=0, le=MAX_PIXEL)]


class PartyFile(BaseModel):
    """The contents of a party's file. Bounds, alphabets and pixels are public metadata of its columns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Path = Field(
        description="CSV, plain or packed (.gz), or parquet; or a folder of images of one size, grey or RGB"
    )
    id_column: str = Field(
        "id", description="identifies a row at all parties; unique; `row number` where no column does"
    )
    delimiter: str = Field(",", min_length=1, max_length=1, description="between the cells of a CSV file")
    encoding: Annotated[str, AfterValidator(_known_encoding)] = Field(
        "utf-8", description="of a CSV file, such as `cp1252`"
    )
    header: bool | None = Field(
        None,
        description="whether the first line of a CSV file holds names; `false`: columns are `column 1`, …; "
        "default: it does, and is refused where it holds cells like those below",
    )
    columns: tuple[str, ...] | None = Field(
        None, description="features; default: all but id, label and split"
    )
    label_column: str | None = Field(
        None, description="of a folder of images any name: its sub-folders are then the classes"
    )
    label_kind: LabelKind = Field(
        "classes", description="`number`: the label is a number, with `bounds`; only some models learn it"
    )
    classes: tuple[str, ...] | None = Field(None, description="labels in their order; default: sorted")
    split_column: str | None = Field(None, description='holds "train" or "predict"')
    bounds: dict[str, tuple[FiniteFloat, FiniteFloat]] = Field(
        {}, description="[low, high] of a column, or of a numeric label"
    )
    alphabets: dict[str, tuple[FiniteFloat, ...]] = Field({}, description="the values that a column can take")
    pixels: dict[str, Annotated[tuple[_Place, ...], Field(min_length=2, max_length=3)]] = Field(
        {}, description="[row, column] of a column that is a pixel, or [row, column, channel]"
    )
    encode: dict[str, Kind] = Field(
        {},
        description="columns of text: `ordinal`, `one_hot`, `one_hot:missing`, `number`, `number:1.234,5`, "
        "`number:below=half`, `date`, `date:%d/%m/%Y`, `date:%d/%m/%y:from=1930` or `time`",
    )
    categories: dict[str, tuple[str, ...]] = Field(
        {}, description="of encoded columns; default: those found, numbers by their size, then texts"
    )
    empty: dict[str, tuple[str, ...]] = Field(
        {}, description="cells of a column that stand for none, such as `-999`"
    )
    missing: Literal["refuse", "drop_row", "mean"] = Field("refuse", description="mean: of the training rows")
    caveat: str | None = Field(None, max_length=500, description="what reports must state about these data")

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns whose texts become categories."""
        return tuple(name for name, kind in self.encode.items() if is_categorical(kind))

    def infos(self, names: Iterable[str]) -> Sequence[ColumnInfo]:
        """What it declares of the columns ``names``.

        Raises:
            DataError: they are pixels too far apart.
        """
        declared = (tuple(of.items()) for of in (self.bounds, self.alphabets, self.pixels))
        return _infos(tuple(names), *declared)

    def has_missing(self, name: str) -> bool:
        """Whether empty cells of the column ``name`` are a category."""
        return self.encode[name] == "one_hot:missing"

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
        for name in self.categorical:
            if name in {*self.bounds, *self.alphabets, *self.pixels}:
                raise ValueError(
                    f"encode.{name}: an encoded column has its codes for bounds and alphabet, declare none"
                )
        for name in self.categories:
            if name not in self.categorical:
                raise ValueError(f"categories.{name}: set encode.{name} to 'ordinal' or 'one_hot' too")
            if len(self.categories[name]) > MOST_CATEGORIES:
                raise ValueError(f"categories.{name}: give {MOST_CATEGORIES:,} at most")
        return self

    @model_validator(mode="after")
    def _numeric_label_fits(self) -> PartyFile:
        if self.label_kind == "classes":
            return self
        if self.label_column is None:
            raise ValueError(
                "label_kind = 'number' without label_column: name the column that holds the numbers"
            )
        if self.classes is not None:
            raise ValueError("classes beside label_kind = 'number': a number has none, leave one of them out")
        if self.label_column not in self.bounds:
            raise ValueError(
                f"bounds.{self.label_column} is missing: label_kind = 'number' needs the [low, high] of the "
                "label, which all parties learn"
            )
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


@lru_cache(maxsize=4)  # clients have their columns in common
def _infos(names: tuple[str, ...], *declared: tuple[tuple[str, Any], ...]) -> Sequence[ColumnInfo]:
    bounds, alphabets, pixels = map(dict, declared)
    found = [ColumnInfo(n, *bounds.get(n, ()), alphabet=alphabets.get(n), pixel=pixels.get(n)) for n in names]
    if problem := too_wide(found):
        raise DataError(f"pixels: {problem}")
    return found
