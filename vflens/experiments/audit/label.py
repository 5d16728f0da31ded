"""The label column of an audited file: classes, or a number where it looks like one and nobody says which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from vflens.config import validate
from vflens.errors import ConfigError, DataError
from vflens.tables.description import PartyFile
from vflens.tables.files import column_profile
from vflens.types import Array, LabelKind

_MOST_VALUES = 20  # different ones that are classes unasked


class Labelled(NamedTuple):
    """A description with its label column, and what was ``assumed`` of it, "" of what was said."""

    spec: PartyFile
    assumed: str = ""


def labelled(spec: PartyFile, column: str | None, kind: LabelKind | None, where: str) -> Labelled:
    """``spec`` with the label ``column`` of this ``kind``; None: as ``spec`` has them.

    A column of more than 20 different numbers of which nobody says the kind is taken as a number. Bounds that
    nobody declares are its least and largest number.

    Raises:
        ConfigError: no label, one that names the rows, or the description is wrong.
        DataError: no such column, no numbers, one alone, or more than 20 different texts of no kind.
    """
    column = column or spec.label_column
    if column is None and kind is not None:
        raise ConfigError(f"--label-kind {kind} without --label: name the column of the label")
    if column is None or (column == spec.label_column and kind is None):
        return Labelled(spec)
    if column in (spec.id_column, spec.split_column):
        raise ConfigError(f"--label {column}: this column names or splits the rows, choose another label")
    numbers, texts = _values(spec, column)
    assumed = kind is None and not texts and len(numbers) > _MOST_VALUES
    if kind is None and len(texts) > _MOST_VALUES:
        raise DataError(
            f"--label {column}: it holds {len(texts):,} different texts: read numbers with marks or a unit "
            f"by --encode {column}=number, or take each text as a class by --label-kind classes"
        )
    if not (assumed or kind == "number"):
        return Labelled(_with(spec, where, label_column=column, label_kind="classes"))
    low, high = spec.bounds.get(column) or _extremes(column, numbers)
    bounds = {**spec.bounds, column: (low, high)}
    found = _with(spec, where, label_column=column, label_kind="number", bounds=bounds, classes=None)
    words = (
        f"{column} holds {len(numbers):,} different numbers and is taken as a number from {low:g} to "
        f"{high:g}, its least and largest: --label-kind classes takes each as a class, and a "
        ".toml file states other bounds."
    )
    return Labelled(found, words if assumed else "")


def _values(spec: PartyFile, column: str) -> tuple[Array, list[str]]:
    """The different numbers (n,) of ``column``, ascending, and its different texts."""
    found = column_profile(spec, column)
    texts = found.different().to_pylist() if found.texts or found.refusal or found.times else []
    return np.unique(found.numbers()), texts


def _extremes(column: str, numbers: Array) -> tuple[float, float]:
    if len(numbers) < 2:
        raise DataError(
            f"--label {column}: it holds {len(numbers) or 'no'} number{'' if len(numbers) == 1 else 's'}: a "
            "model needs two different ones, choose another label"
        )
    return float(numbers[0]), float(numbers[-1])


def _with(spec: PartyFile, where: str, **changes: object) -> PartyFile:
    return validate(TypeAdapter(PartyFile), {**spec.model_dump(), **changes}, where)
