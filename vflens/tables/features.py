"""The numbers of a party's table: one array, read, checked and put into the order of a run.

A large one lies in a mapped file (:func:`vflens.storage.files.table_room`): whatever goes through it takes
some rows at a time, and lets them go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from vflens.array import let_go, mapped, row_blocks
from vflens.errors import DataError
from vflens.storage.arrow import bytes_of
from vflens.storage.files import table_room
from vflens.tables.description import PartyFile
from vflens.tables.encodings import Conversion
from vflens.tables.pixels import holds_images
from vflens.tables.places import Places
from vflens.types import Array, ColumnInfo

if TYPE_CHECKING:
    import pyarrow as pa

_CHANGED = "it changed while it was read: start again when no program writes it"
_MOVED_BYTES = 1 << 22  # of columns that are moved together
_SLAB_BYTES = 1 << 28  # of rows that are moved in one way through a mapped file


class RawTable(Protocol):
    """The cells of a file, read on demand."""

    names: Sequence[str]
    rows: int  # 0 if that is known at its end

    def chunks(
        self,
        names: Sequence[str],
        whole: Callable[[Sequence[str]], None] | None = None,
        *,
        by_rows: bool = False,
    ) -> Iterator[tuple[int, str, pa.Array]]:
        """Yield (first row, name, values) of some cells at a time, until all of ``names`` are read; a
        column's in order. ``whole`` gets the names of those that are read to their end, of a long file
        few at a time. ``by_rows``: all columns of some rows, then of the next.
        """

    def are_bytes(self, names: Sequence[str]) -> bool:
        """Whether the file stores all of ``names`` as unsigned 8-bit integers, none missing."""

    def holds_matrix(self, names: Sequence[str]) -> bool:
        """Whether the file stores just ``names`` together."""

    def matrix(self) -> Iterator[Array]:
        """The numbers (n, d) that are stored together, some rows at a time."""


def numbers_of(
    spec: PartyFile, cells: RawTable, names: Sequence[str], *, by_rows: bool = False
) -> Iterator[tuple[int, str, Array]]:
    """The chunks of :meth:`RawTable.chunks`, values float64, NaN where missing."""
    conversions = {name: Conversion(name, spec.encode.get(name)) for name in names}
    for start, name, values in cells.chunks(names, by_rows=by_rows):
        yield start, name, conversions[name].numbers(values, start)
    for conversion in conversions.values():
        conversion.finish()


def features_of(
    spec: PartyFile, cells: RawTable, columns: Sequence[ColumnInfo], place: Mapping[str, int], kept: Array
) -> tuple[Array, Array]:
    """The numbers (n, d) of the ``kept`` rows, a column in its ``place``: bytes of images, else float64; and
    which columns (d,) are surely as described.
    """
    as_bytes = holds_images(columns) and cells.are_bytes(list(place))
    features = table_room((int(np.count_nonzero(kept)), len(columns)), np.uint8 if as_bytes else np.float64)
    low, high = _ends(columns)
    sound, before, read = np.array([as_bytes or c.alphabet is None for c in columns], bool), 0, 0
    for start, at, values in _chunks(spec, cells, place, as_bytes=as_bytes, by_rows=bool(mapped(features))):
        if start != before:
            let_go(features)
        rows = kept[start : start + len(values)]
        if len(rows) < len(values):
            raise DataError(_CHANGED)
        first, count = np.count_nonzero(kept[:start]), np.count_nonzero(rows)
        before, read = start, read + values.size
        own = values if count == len(values) else values[rows]
        features[first : first + count, at] = own
        sound[at] &= ((own >= low[at]) & (own <= high[at])).all(axis=0)
    if read < len(kept) * len(place):
        raise DataError(_CHANGED)
    return features, sound


def _ends(columns: Sequence[ColumnInfo]) -> tuple[Array, Array]:
    """The least and the greatest number that each of ``columns`` may hold, float64 (d,)."""
    most = np.finfo(np.float64).max
    bounds = [(-most if c.low is None else c.low, most if c.high is None else c.high) for c in columns]
    low, high = np.array(bounds, np.float64).reshape(-1, 2).T
    return low, high


def _chunks(
    spec: PartyFile, cells: RawTable, place: Mapping[str, int], *, as_bytes: bool, by_rows: bool
) -> Iterator[tuple[int, int | slice, Array]]:
    """First row, column or columns, and numbers of some cells at a time."""
    names, start = list(place), 0
    if not spec.encode and cells.holds_matrix(names):
        for values in cells.matrix():
            yield start, slice(None), values
            start += len(values)
    elif as_bytes:
        for start, name, values in cells.chunks(names, by_rows=by_rows):
            yield start, place[name], bytes_of(values)
    else:
        for start, name, values in numbers_of(spec, cells, names, by_rows=by_rows):
            yield start, place[name], values


def put(features: Array, at: int, values: Array) -> None:
    """Make ``values`` (n,) the column ``at`` of ``features``."""
    start = 0
    for rows in row_blocks(features):
        rows[:, at] = values[start : start + len(rows)]
        start += len(rows)


def check(spec: PartyFile, column: ColumnInfo, values: Array, places: Places, training: Array) -> None:
    """Refuse numbers (n,) that are not as described; missing numbers become the mean, if so configured."""
    name, low, high = column.name, column.low, column.high
    missing = np.isnan(values)
    if spec.missing == "refuse" or column.alphabet is not None:
        refuse_missing(spec, name, missing, places)
    _refuse(np.isinf(values), name, values, places, "that is not finite")
    if low is not None and high is not None:
        _refuse((values < low) | (values > high), name, values, places, f"outside its bounds [{low}, {high}]")
    if column.alphabet is not None:
        _refuse(~np.isin(values, column.alphabet), name, values, places, "that is not in its alphabet")
    if missing.any():
        values[missing] = _mean(name, values[training & ~missing])


def _mean(name: str, values: Array) -> float:
    if not len(values):
        raise DataError(f"column {name!r} has no value in any training row: leave it out of columns")
    return float(values.mean())


def _refuse(bad: Array, name: str, values: Array, places: Places, why: str) -> None:
    if bad.any():
        raise places.refusal(
            bad, f"column {name!r} holds a number in", f" {why}: correct the one or the other", values
        )


def refuse_missing(spec: PartyFile, name: str, missing: Array, places: Places) -> None:
    """Refuse the rows ``missing``, bool (n,), in which the column ``name`` has no value.

    Raises:
        DataError: there is one.
    """
    if missing.any():
        remedy = (
            "set missing = 'drop_row'" if spec.missing == "mean" else "set missing = 'drop_row' or 'mean'"
        )
        raise places.refusal(missing, f"column {name!r} misses the value of", f": fill it in, or {remedy}")


def moved(features: Array, order: Array) -> Array:
    """The rows ``order`` of ``features``, moved in place: a second copy would double what a party holds."""
    if mapped(features):
        return _moved_in_file(features, order)
    truth = features[: len(order)]
    at_once = max(1, _MOVED_BYTES // max(1, truth[:, :1].nbytes))
    for j in range(0, truth.shape[1], at_once):
        truth[:, j : j + at_once] = features[order, j : j + at_once]
    return truth


def _moved_in_file(features: Array, order: Array) -> Array:
    """The rows ``order`` of mapped ``features``, in another file: many in each way through the first, since
    disks find single rows slowly.
    """
    truth = table_room((len(order), features.shape[1]), features.dtype.type)
    slab, few = (max(1, size // features[0].nbytes) for size in (_SLAB_BYTES, _MOVED_BYTES))
    for start in range(0, len(order), slab):
        wanted = order[start : start + slab]
        places, rows = np.argsort(wanted), np.empty((len(wanted), features.shape[1]), features.dtype)
        for i in range(0, len(places), few):
            rows[places[i : i + few]] = features[wanted[places[i : i + few]]]
            let_go(features)
        truth[start : start + slab] = rows  # in their order: a file has larger pages so
        let_go(truth)
    return truth
