"""The document of ``vflens audit --json``, checked: a damaged one is refused before it decides anything."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, model_validator

from vflens.errors import DataError
from vflens.names import HEX_64
from vflens.storage.json_file import in_words, json_object, read_as
from vflens.storage.regular import read_text
from vflens.types import Document, Phase
from vflens.words import counted

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_Size: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # of an error, a unit, a distance
_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_Rows: TypeAlias = Annotated[int, Field(gt=0)]
_Word: TypeAlias = Annotated[str, Field(min_length=1)]


class _Attack(BaseModel):
    attack: _Word
    kind: _Word
    phase: Phase
    released: str
    rows: _Rows
    mse: _Size
    stderr: _Size
    columns: tuple[_Size, ...]
    column_blind: tuple[_Size, ...]
    column_stderr: tuple[_Size, ...]
    found: tuple[_Share, ...]
    blind_found: tuple[_Share, ...]
    imputed_found: tuple[_Share | None, ...]

    @property
    def by_column(self) -> dict[str, Sized]:
        """Its figures that have one for each column."""
        names = ("columns", "column_blind", "column_stderr", "found", "blind_found", "imputed_found")
        return {name: getattr(self, name) for name in names}


class _Case(BaseModel):
    target: str
    attack: _Word
    scored_set: _Word
    rows: _Rows
    rows_found: _Share
    unique: _Share
    control_rows: _Share
    control_unique: _Share

    @model_validator(mode="after")
    def _alone_are_some(self) -> _Case:
        for alone, whole in (("unique", "rows_found"), ("control_unique", "control_rows")):
            if getattr(self, alone) > getattr(self, whole) + 1e-9:
                raise ValueError(f"{alone}: it is at most {whole}")
        return self


class _Cost(BaseModel):
    measure: str
    lost: tuple[_Number, ...]


class _Mean(BaseModel):
    mean: _Number | None  # AUC is not known of rows of one class


class _Tried(BaseModel):
    defense: _Word
    settings: Document
    at: _Word
    mse: _Size | None
    leak: _Number | None
    price: str
    reason: str
    column: str = ""
    cost: _Cost | None = None

    @model_validator(mode="after")
    def _is_measured(self) -> _Tried:
        if not self.reason and (self.mse is None or self.leak is None):
            raise ValueError("mse, leak: without a reason both are measured")
        return self


class _Wanted(BaseModel):
    most_leak: _Share | None
    least_error: _Share | None
    most_loss: _Share

    @model_validator(mode="after")
    def _is_one(self) -> _Wanted:
        if (self.most_leak is None) == (self.least_error is None):
            raise ValueError("most_leak, least_error: one of them is asked for")
        return self


class _Reached(BaseModel):
    defense: _Word
    settings: Document


class _Read(BaseModel):
    file: _Word
    sha256: Annotated[str, Field(pattern=HEX_64)]


class AuditFile(BaseModel):
    """What thresholds and documents read of an audit; other fields are ignored."""

    subject: _Word
    columns: Annotated[tuple[_Word, ...], Field(min_length=1)]
    tolerance: dict[str, _Size]
    units: tuple[_Size, ...]
    attacks: Annotated[tuple[_Attack, ...], Field(min_length=1)]
    worst_cases: tuple[_Case, ...]
    attacked_rows: _Rows | None = None
    training: Literal["clear", "secure"] | None = None
    failed: dict[str, str] = {}
    wanted: _Wanted | None = None
    utility: dict[str, _Mean] = {}
    defenses: tuple[_Tried, ...] = ()
    fitting: tuple[_Reached, ...] = ()
    files: tuple[_Read, ...] = ()
    began: str = ""
    ended: str = ""
    version: str = ""

    @model_validator(mode="after")
    def _figures_fit(self) -> AuditFile:
        for i, attack in enumerate(self.attacks):
            for name, figures in attack.by_column.items():
                _check_length(f"attacks.{i}.{name}", figures, self.columns)
        if self.units:
            _check_length("units", self.units, self.columns)
        if self.defenses and self.wanted is None:
            raise ValueError("wanted: it is missing")
        if unknown := sorted(self.tolerance.keys() - set(self.columns)):
            raise ValueError(f"tolerance: {unknown[0]!r} is none of the columns")
        return self


def _check_length(field: str, figures: Sized, columns: Sized) -> None:
    if len(figures) != len(columns):
        raise ValueError(
            f"{field}: it has {counted(len(figures), 'figure')}, of {counted(len(columns), 'column')}"
        )


def read_audit(file: Path, due: str = "audit") -> Document:
    """The audit in ``file``, where what is ``due`` may be something else, too.

    Raises:
        DataError: it is none, or damaged; names the field, its value, and how to write it.
    """
    try:
        read_as(AuditFile, file)
        return json_object(read_text(file))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{file} is no {due} ({in_words(error)}): write one with `vflens audit … --json > {file.name}`"
        ) from error
