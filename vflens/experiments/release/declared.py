"""What a description declares of a table's cells: a release refuses others, as an audit does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vflens.errors import DataError
from vflens.storage.arrow import in_numpy, strings
from vflens.tables.description import PartyFile
from vflens.tables.places import data_rows
from vflens.types import Array


def refuse_numbers(spec: PartyFile, columns: Mapping[str, Array], rows: Array) -> None:
    """Refuse numbers (n,) of ``columns``, in the data ``rows`` (n,), beyond bounds or alphabet of ``spec``.

    Raises:
        DataError: names the column and the first such row.
    """
    for name, values in columns.items():
        low, high = spec.bounds.get(name, (-np.inf, np.inf))
        why = f" outside its bounds [{low}, {high}]: correct the one or the other"
        _refuse((values < low) | (values > high), rows, f"column {name!r} holds a number in", why)
        if name in spec.alphabets:
            why = " that is not in its alphabet: correct the one or the other"
            _refuse(~np.isin(values, spec.alphabets[name]), rows, f"column {name!r} holds a number in", why)


def refuse_texts(what: str, cells: pa.Array, where: str, texts: Sequence[str], rows: Array) -> None:
    """Refuse ``cells`` (n,), in the data ``rows`` (n,), that are none of the ``texts`` declared at ``where``.

    Raises:
        DataError: says ``what`` holds them, and the first such row.
    """
    there = pc.or_(pc.is_null(cells), pc.is_in(cells.cast(pa.string()), strings(texts)))
    _refuse(
        in_numpy(there) == 0, rows, f"{what} holds another text in", f": its {where} are {', '.join(texts)}"
    )


def _refuse(wrong: Array, rows: Array, before: str, after: str) -> None:
    if wrong.any():
        raise DataError(f"{before} {data_rows(rows[wrong])}{after}")
