"""What a description says of an audited file: its label column, classes or a number; what counts as found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from vflens.config import PartyConfig, PassiveConfig, load_description, load_party, read_toml, validate
from vflens.config.compatibility import check_tolerance
from vflens.errors import ConfigError, DataError
from vflens.tables.description import PartyFile
from vflens.tables.encodings import is_categorical
from vflens.tables.files import column_profile
from vflens.tables.table import Table
from vflens.types import Array, Document, LabelKind

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
        raise ConfigError(f"label_kind = {kind!r} without --label: name the column of the label")
    if column is None or (column == spec.label_column and kind is None):
        return Labelled(spec)
    if column in (spec.id_column, spec.split_column):
        raise ConfigError(f"--label {column}: this column names or splits the rows, choose another label")
    numbers, texts = _values(spec, column)
    assumed = kind is None and not texts and len(numbers) > _MOST_VALUES
    if kind is None and len(texts) > _MOST_VALUES:
        raise DataError(
            f"--label {column}: it holds {len(texts):,} different texts: read numbers with marks or a unit "
            f"by --encode {column}=number, or take each text as a class by label_kind = "
            "'classes' in [audit] of a description"
        )
    if not (assumed or kind == "number"):
        return Labelled(_with(spec, where, label_column=column, label_kind="classes"))
    low, high = spec.bounds.get(column) or _extremes(column, numbers)
    bounds = {**spec.bounds, column: (low, high)}
    found = _with(spec, where, label_column=column, label_kind="number", bounds=bounds, classes=None)
    words = (
        f"{column} holds {len(numbers):,} different numbers and is taken as a number between its least and "
        "largest: a description states other bounds, and label_kind = 'classes' "
        "in its [audit] takes each as a class."
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


def table_description(
    path: Path,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str],
    missing: str | None = None,
    *,
    label: str | None = None,
    label_kind: LabelKind | None = None,
) -> Labelled:
    """The description of the table in ``path``, or in the file that the TOML file ``path`` describes;
    a ``label`` among the columns that it describes is none of them.

    Raises:
        ConfigError: the description, a kind or the choice of columns is wrong.
        DataError: the label is not of its kind; see :func:`vflens.experiments.audit.described.labelled`.
    """
    spec = (
        _description(path) if path.suffix == ".toml" else PartyFile(file=path.resolve(), id_column=id_column)
    )
    if columns is None and spec.columns and label in spec.columns:
        spec = _no_feature(spec, label)
    changes: Document = {"encode": {**spec.encode, **encode}}
    if columns is not None:
        changes["columns"] = tuple(columns)
    if missing is not None:
        changes["missing"] = missing
    spec = validate(TypeAdapter(PartyFile), {**spec.model_dump(), **changes}, str(path))
    return labelled(spec, label, label_kind, str(path))


def _no_feature(spec: PartyFile, label: str) -> PartyFile:
    """``spec`` without the feature ``label`` and its categories: a description that the check writes knows
    no label.
    """
    return spec.model_copy(
        update={
            "columns": tuple(name for name in spec.columns or () if name != label),
            "encode": {n: kind for n, kind in spec.encode.items() if n != label or not is_categorical(kind)},
            "categories": {n: texts for n, texts in spec.categories.items() if n != label},
        }
    )


def _description(path: Path) -> PartyFile:
    settings = read_toml(path)
    if "role" in settings:
        return passive(load_party(path), f"{path} configures").data
    return load_description(path)


def stated_tolerance(path: Path, chosen: Table, whole: Callable[[], Table]) -> dict[str, float]:
    """What the configuration of a passive party in ``path`` states of the ``chosen`` columns of its ``whole``
    table; {} of another file.

    Raises:
        ConfigError: it states one of a column that the table has not.
    """
    if path.suffix != ".toml" or "role" not in read_toml(path):
        return {}
    stated = passive(load_party(path), f"{path} configures").scoring.tolerance
    names = {c.name for c in chosen.columns}
    if stated.keys() - names:
        check_tolerance(stated, [c.name for c in whole().columns], path.name)
    return {name: width for name, width in stated.items() if name in names}


def passive(config: PartyConfig, file: str) -> PassiveConfig:
    """``config``, if it is a passive party's; ``file`` begins the refusal of another."""
    if not isinstance(config, PassiveConfig):
        raise ConfigError(f"{file} the {config.role} party: an audit is a passive one's")
    return config
