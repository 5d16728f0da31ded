"""What texts of a table become: labels, as places among classes or as numbers, and codes of categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vflens.errors import DataError
from vflens.names import has_controls
from vflens.storage.arrow import in_numpy, strings
from vflens.tables.description import PartyFile
from vflens.tables.places import Places
from vflens.tables.written.numbers import PLAIN
from vflens.types import Array, ColumnInfo
from vflens.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    Text: TypeAlias = dict[str, pa.ChunkedArray]  # strings by column, null or "" where missing


def refuse_controls(what: str, names: Iterable[str]) -> None:
    """Refuse control characters: names reach terminals and pages of all parties, where a line end or ESC
    could forge text.
    """
    if any(map(has_controls, names)):
        raise DataError(f"{what} holds control characters: rename it")


def is_empty(column: pa.ChunkedArray) -> Array:
    """Where text is missing, bool (n,)."""
    import pyarrow.compute as pc

    empty: Array = ~(in_numpy(pc.binary_length(column)) > 0)
    return empty


def label_of(spec: PartyFile) -> ColumnInfo | None:
    """The metadata of a numeric label, None of classes."""
    if spec.label_column is None or spec.label_kind == "classes":
        return None
    return ColumnInfo(spec.label_column, *spec.bounds[spec.label_column])


def labels_of(spec: PartyFile, text: Text, places: Places) -> tuple[Array | None, tuple[str, ...]]:
    """Labels (n,) and the names of the classes, none of numbers.

    Raises:
        DataError: a label is empty, of another class, no number or beyond its bounds.
    """
    if spec.label_column is None:
        return None, ()
    column = text.pop(spec.label_column)
    empty = is_empty(column)
    if empty.any():
        raise places.refusal(
            empty,
            f"label_column {spec.label_column!r} is empty in",
            ": label it or drop it, missing = 'drop_row' does",
        )
    if (label := label_of(spec)) is not None:
        return _numeric_labels(label, column, places), ()
    names = spec.classes or tuple(sorted(column.unique().to_pylist()))
    if len(names) < 2:
        count = counted(len(names), "class")
        raise DataError(f"label_column {spec.label_column!r} holds {count}: a model needs at least two")
    refuse_controls(f"a class of label_column {spec.label_column!r}", names)
    return codes_of(column, names, f"label_column {spec.label_column!r}", "classes", places), names


def _numeric_labels(label: ColumnInfo, column: pa.ChunkedArray, places: Places) -> Array:
    """The numbers float64 (n,) of the texts in ``column``."""
    import pyarrow.compute as pc

    what = f"label_column {label.name!r} holds"
    odd = in_numpy(pc.match_substring_regex(column, PLAIN)) == 0
    if odd.any():
        after = (
            f": correct it, set encode.{label.name} = 'number' for marks and units, or label_kind = 'classes'"
        )
        raise places.refusal(odd, f"{what} no number in", after, column)
    values = np.array(column.to_pylist(), np.float64)
    beyond = np.clip(values, label.low, label.high) != values
    if beyond.any():
        after = f" outside its bounds [{label.low}, {label.high}]: correct the one or the other"
        raise places.refusal(beyond, f"{what} a number in", after, column)
    return values


def codes_of(column: pa.ChunkedArray, names: Sequence[str], what: str, where: str, places: Places) -> Array:
    """The position in ``names`` of every string (n,), int64."""
    import pyarrow.compute as pc

    found = in_numpy(pc.index_in(column, strings(names)))
    unknown = np.isnan(found)
    if unknown.any():
        raise places.refusal(
            unknown, f"{what} holds another text in", f": its {where} are {', '.join(names)}", column
        )
    codes: Array = found.astype(np.int64)
    return codes
