"""The columns of a released table: numbers, encoded text, the label, identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vflens.errors import ConfigError, DataError
from vflens.experiments.release.file import Progress, TableFile, as_column, cells, floats, nulls
from vflens.experiments.release.options import Options
from vflens.names import repeated
from vflens.types import Array

#: A column with more different texts counts as identifiers.
MOST_CATEGORIES = 1000
#: Squares of larger values, or their sums, may leave the range of float64.
LARGEST = 1e150


@dataclass(frozen=True)
class Encoding:
    """Text as numbers: ``kind`` "ordinal", codes 0, 1, … of the sorted ``categories``, or "one-hot"."""

    kind: str
    categories: tuple[str, ...]

    def names(self, column: str) -> list[str]:
        """The columns that ``column`` becomes."""
        return [column] if self.kind == "ordinal" else [f"{column}={c}" for c in self.categories]

    def numbers(self, column: pa.Array) -> Array:
        """Float64 (n, columns); NaN where missing."""
        found = as_text(column).dictionary_encode()
        code = {category: float(i) for i, category in enumerate(self.categories)}
        codes = np.array([*(code.get(c, np.nan) for c in found.dictionary.to_pylist()), np.nan])
        values: Array = codes[np.where(nulls(column), -1, cells(found.indices))]
        if self.kind == "ordinal":
            return values[:, None]
        hot: Array = (values[:, None] == np.arange(len(self.categories))).astype(np.float64)
        hot[np.isnan(values)] = np.nan
        return hot


@dataclass(frozen=True)
class Columns:
    """The plan of a release: ``features`` in file order, ``kept`` the copied columns."""

    file: TableFile
    features: tuple[str, ...]
    label: str | None
    kept_ids: tuple[str, ...]
    encodings: Mapping[str, Encoding]

    @property
    def kept(self) -> tuple[str, ...]:
        """The copied columns."""
        return (*(() if self.label is None else (self.label,)), *self.kept_ids)

    @property
    def names(self) -> list[str]:
        """The p released columns with noise."""
        return list(chain.from_iterable(self._names(f) for f in self.features))

    def groups(self) -> Iterator[tuple[str, slice]]:
        """Each feature with its place among :attr:`names`."""
        start = 0
        for feature in self.features:
            stop = start + len(self._names(feature))
            yield feature, slice(start, stop)
            start = stop

    def schema(self) -> pa.Schema:
        """Schema of the released file: the original's order, with encoded columns for text."""
        fields: list[pa.Field] = []
        for name in self.file.names:
            if name in self.features:
                fields += [pa.field(n, pa.float64()) for n in self._names(name)]
            elif name in self.kept:
                fields.append(pa.field(name, self.file.kept_type(name)))
        return pa.schema(fields)

    def _names(self, feature: str) -> list[str]:
        encoding = self.encodings.get(feature)
        return encoding.names(feature) if encoding else [feature]


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the table: ``features`` float64 (n, p), and the copied columns."""

    features: Array
    kept: Mapping[str, pa.Array]

    def columns(self, plan: Columns) -> list[pa.Array]:
        """In the order of :meth:`Columns.schema`."""
        by_name = dict(self.kept)
        for j, name in enumerate(plan.names):
            by_name[name] = as_column(self.features[:, j])
        return [by_name[name] for name in plan.schema().names]


def as_text(column: pa.Array) -> pa.Array:
    """Any column as strings; null stays null."""
    return column.cast(pa.string())


def plan_columns(file: TableFile, options: Options, progress: Progress) -> Columns:
    """The roles of the columns of ``file``; ``options.encode``: ``COLUMN=KIND``, or ``KIND`` for all text
    columns.

    Raises:
        ConfigError: an unknown column or kind, a column with two roles, or no column left to release.
        DataError: a text column with too many different values.
    """
    label, ids = options.label, options.ids
    special = [*(() if label is None else (label,)), *ids]
    for name in special:
        if name not in file.names:
            raise ConfigError(
                f"{file.path} has no column {name!r}: its columns are "
                f"{', '.join(file.names)}{file.separator_hint}"
            )
    if repeated(special) is not None:
        raise ConfigError(
            f"column {repeated(special)!r} is named twice by --label and --id: a column has one role"
        )
    features = tuple(n for n in file.names if n not in special)
    if not features:
        raise ConfigError(f"{file.path} has no column to release beside label and identifiers")
    kinds = _kinds(file, features, options.encode, progress)
    plan = Columns(file, features, label, ids if options.keep_ids else (), _categories(file, kinds, progress))
    twice = repeated(plan.schema().names)
    if twice is not None:
        raise DataError(
            f"{file.path}: one-hot column {twice!r} has the name of another column: rename that one"
        )
    return plan


def blocks(plan: Columns, *, drop_missing: bool, stage: str, progress: Progress) -> Iterator[Block]:
    """The rows of the file, without incomplete ones if ``drop_missing``.

    Raises:
        DataError: a value is missing, infinite or too large, or the label is missing.
    """
    numbers = [f for f in plan.features if f not in plan.encodings]
    row = 0
    for found in plan.file.blocks(numbers, [*plan.encodings, *plan.kept], stage, progress):
        x = np.hstack([_numbers(found[f], plan.encodings.get(f)) for f in plan.features])
        kept = {name: found[name] for name in plan.kept}
        missing = np.isnan(x).any(axis=1)
        if plan.label is not None:
            missing |= nulls(found[plan.label])
        if missing.any() and not drop_missing:
            raise _missing(plan, x, row, int(np.argmax(missing)))
        if missing.any():
            whole = as_column(np.flatnonzero(~missing))
            x, kept = x[~missing], {n: c.take(whole) for n, c in kept.items()}
        _refuse_large(plan, x)
        row += len(missing)
        yield Block(x, kept)


def _numbers(column: pa.Array, encoding: Encoding | None) -> Array:
    if encoding is not None:
        return encoding.numbers(column)
    return floats(column)[:, None]


def _missing(plan: Columns, x: Array, before: int, row: int) -> DataError:
    absent = np.flatnonzero(np.isnan(x[row]))
    column = plan.names[absent[0]] if len(absent) else plan.label
    return DataError(
        f"{plan.file.path}: column {column!r} misses a value in data row {before + row + 1}: fill it in, or "
        "leave such rows out with --missing drop-row"
    )


def _refuse_large(plan: Columns, x: Array) -> None:
    wrong = ~(np.abs(x) <= LARGEST)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise DataError(
            f"{plan.file.path}: column {plan.names[j]!r} holds {x[i, j]:g}, and squares of numbers beyond "
            f"{LARGEST:g} overflow: correct or rescale it"
        )


def _kinds(
    file: TableFile, features: Sequence[str], encode: Sequence[str], progress: Progress
) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for text in encode:
        column, _, kind = text.rpartition("=")
        if kind not in ("ordinal", "one-hot"):
            raise ConfigError(
                f"--encode {text!r}: give ordinal or one-hot, or COLUMN=ordinal or COLUMN=one-hot"
            )
        if "=" in text and column not in features:
            raise ConfigError(
                f"--encode {text!r}: there is no column {column!r} to release; these are "
                f"{', '.join(features)}"
            )
        chosen = (
            [column] if "=" in text else file.text_columns([f for f in features if f not in kinds], progress)
        )
        kinds |= dict.fromkeys(chosen, kind)
    return {f: kinds[f] for f in features if f in kinds}


def _categories(file: TableFile, kinds: Mapping[str, str], progress: Progress) -> dict[str, Encoding]:
    found: dict[str, set[str]] = {name: set() for name in kinds}
    for block in file.blocks((), list(kinds), "categories", progress):
        for name, seen in found.items():
            seen.update(pc.unique(as_text(block[name]).drop_null()).to_pylist())
            if len(seen) > MOST_CATEGORIES:
                raise DataError(
                    f"{file.path}: column {name!r} holds more than {MOST_CATEGORIES} different texts: if it "
                    f"identifies rows leave it out with --id {name}, else group them"
                )
    empty = next((name for name, seen in found.items() if not seen), None)
    if empty is not None:
        raise DataError(
            f"{file.path}: column {empty!r} holds no text in any row: leave it out with --id {empty}"
        )
    return {name: Encoding(kind, _in_order(found[name])) for name, kind in kinds.items()}


def _in_order(categories: set[str]) -> tuple[str, ...]:
    """Sorted by size if all are numbers, else as text."""
    try:
        return tuple(sorted(categories, key=lambda c: (float(c), c)))
    except ValueError:
        return tuple(sorted(categories))
