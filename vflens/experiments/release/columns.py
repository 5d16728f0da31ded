"""The columns of a released table: numbers, encoded text, the label, identifiers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from shlex import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vflens.errors import ConfigError, DataError
from vflens.experiments.release.declared import refuse_numbers, refuse_texts
from vflens.experiments.release.file import OwnersTable
from vflens.experiments.release.options import ReleaseOptions
from vflens.names import repeated
from vflens.storage.arrow import in_numpy, numbers
from vflens.tables.cells import of_file
from vflens.tables.description import PartyFile
from vflens.tables.encodings import (
    MISSING,
    MOST_CATEGORIES,
    checked_kind,
    column_and_kind,
    in_order,
    is_categorical,
)
from vflens.tables.places import data_rows
from vflens.types import Array, Progress

#: Squares of larger values, or their sums, may leave the range of float64.
LARGEST = 1e150


@dataclass(frozen=True)
class Encoding:
    """Text as numbers: the ``kind`` of :mod:`vflens.tables.encodings`, with its sorted ``categories``."""

    kind: str
    categories: tuple[str, ...]

    def names(self, column: str) -> list[str]:
        """The columns that ``column`` becomes."""
        return [column] if self.kind == "ordinal" else [f"{column}={c}" for c in self.categories]

    def numbers(self, column: pa.Array) -> Array:
        """Float64 (n, columns); NaN where missing."""
        found = column.cast(pa.string()).dictionary_encode()
        code = {category: float(i) for i, category in enumerate(self.categories)}
        codes = np.array([*(code.get(c, np.nan) for c in found.dictionary.to_pylist()), np.nan])
        values: Array = codes[np.where(_nulls(column), -1, in_numpy(found.indices)).astype(int)]
        if self.kind == "one_hot:missing":
            values = np.nan_to_num(values, nan=code[MISSING])
        if self.kind == "ordinal":
            return values[:, None]
        hot: Array = (values[:, None] == np.arange(len(self.categories))).astype(np.float64)
        hot[np.isnan(values)] = np.nan
        return hot


@dataclass(frozen=True)
class ReleasePlan:
    """The plan of a release: ``features`` in file order, ``kept`` the copied columns.

    ``encodings`` are of categories, ``conversions`` the kinds of texts that are numbers or dates. Cells are
    as ``described``.
    """

    file: OwnersTable
    features: tuple[str, ...]
    label: str | None
    kept_ids: tuple[str, ...]
    encodings: Mapping[str, Encoding]
    conversions: Mapping[str, str]
    described: PartyFile | None = None

    @property
    def kept(self) -> tuple[str, ...]:
        """The copied columns."""
        return (*(() if self.label is None else (self.label,)), *self.kept_ids)

    @property
    def found(self) -> list[str]:
        """The columns whose categories nobody declared: they are those of the table."""
        declared = {} if self.described is None else self.described.categories
        return [name for name in self.encodings if name not in declared]

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

    def columns(self, plan: ReleasePlan) -> list[pa.Array]:
        """In the order of :meth:`ReleasePlan.schema`."""
        by_name = dict(self.kept)
        for j, name in enumerate(plan.names):
            by_name[name] = numbers(self.features[:, j])
        return [by_name[name] for name in plan.schema().names]


def plan_columns(file: OwnersTable, options: ReleaseOptions, progress: Progress) -> ReleasePlan:
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
            raise ConfigError(f"{file.path} has no column {name!r}: its columns are {', '.join(file.names)}")
    if repeated(special) is not None:
        raise ConfigError(
            f"column {repeated(special)!r} is named twice by --label and --id: a column has one role"
        )
    features = tuple(n for n in file.names if n not in {*special, *file.index})
    if not features:
        raise ConfigError(f"{file.path} has no column to release beside label and identifiers")
    kinds = _kinds(file, features, options.encode, progress)
    grouped = {name: kind for name, kind in kinds.items() if is_categorical(kind)}
    plan = ReleasePlan(
        file,
        features,
        label,
        ids if options.keep_ids else (),
        encodings=_categories(file, grouped, options.described, progress),
        conversions={name: kind for name, kind in kinds.items() if name not in grouped},
        described=options.described,
    )
    twice = repeated(plan.schema().names)
    if twice is not None:
        raise DataError(
            f"{file.path}: one-hot column {twice!r} has the name of another column: rename that one"
        )
    return plan


def blocks(plan: ReleasePlan, *, drop_missing: bool, stage: str, progress: Progress) -> Iterator[Block]:
    """The rows of the file, without incomplete ones if ``drop_missing``.

    Raises:
        DataError: a value is missing, infinite or too large, or the label is missing.
    """
    converted = {
        name: plan.file.conversion(name, plan.conversions.get(name))
        for name in plan.features
        if name not in plan.encodings
    }
    row = 0
    with of_file(plan.file.path):
        for found in plan.file.blocks(list(converted), [*plan.encodings, *plan.kept], stage, progress):
            read = [
                converted[f].numbers(found[f], row)[:, None]
                if f in converted
                else plan.encodings[f].numbers(found[f])
                for f in plan.features
            ]
            if not any(conversion.fault for conversion in converted.values()):  # else count all of them
                x, numbered = np.hstack(read), row + np.arange(1, len(read[0]) + 1)
                kept = {name: found[name] for name in plan.kept}
                yield _complete(plan, Block(x, kept), numbered, drop_missing=drop_missing)
            row += len(read[0])
        for conversion in converted.values():
            conversion.finish()


def _complete(plan: ReleasePlan, block: Block, rows: Array, *, drop_missing: bool) -> Block:
    """``block``, the data ``rows`` (n,), without incomplete ones."""
    missing = np.isnan(block.features).any(axis=1)
    if plan.label is not None:
        missing |= _nulls(block.kept[plan.label])
    if missing.any() and not drop_missing:
        raise _missing(plan, block.features, rows, int(np.argmax(missing)))
    if missing.any():
        whole = numbers(np.flatnonzero(~missing))
        kept = {name: column.take(whole) for name, column in block.kept.items()}
        block = Block(block.features[~missing], kept)
    _refuse_large(plan, block.features, rows[~missing])
    if plan.described is not None:
        _refuse_undeclared(plan, plan.described, block, rows[~missing])
    return block


def _refuse_undeclared(plan: ReleasePlan, spec: PartyFile, block: Block, rows: Array) -> None:
    numbers = {name: block.features[:, at.start] for name, at in plan.groups() if name not in plan.encodings}
    refuse_numbers(spec, numbers, rows)
    if plan.label is not None and plan.label == spec.label_column and spec.classes:
        what = f"label_column {plan.label!r}"
        refuse_texts(what, block.kept[plan.label], "classes", spec.classes, rows)


def _nulls(column: pa.Array) -> Array:
    """Where a column is null or NaN, (n,)."""
    missing: Array = in_numpy(column.is_null(nan_is_null=True)) > 0
    return missing


def _missing(plan: ReleasePlan, x: Array, rows: Array, row: int) -> DataError:
    absent = np.flatnonzero(np.isnan(x[row]))
    column = plan.names[absent[0]] if len(absent) else plan.label
    return DataError(
        f"column {column!r} misses a value in data row {rows[row]}: fill it in, or leave such rows out with "
        "--missing drop_row"
    )


def _refuse_large(plan: ReleasePlan, x: Array, numbers: Array) -> None:
    """Refuse what is too large in ``x`` (n, p), the data rows ``numbers`` (n,)."""
    wrong = ~(np.abs(x) <= LARGEST)
    if wrong.any():
        j = int(np.argmax(wrong.any(axis=0)))
        raise DataError(
            f"column {plan.names[j]!r} is infinite or beyond {LARGEST:g}, where squares "
            f"overflow, in {data_rows(numbers[wrong[:, j]])}: correct or rescale it"
        )


def _kinds(
    file: OwnersTable, features: Sequence[str], encode: Sequence[str], progress: Progress
) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for text in encode:
        column, kind = column_and_kind(text)
        try:
            checked_kind(kind)
        except ValueError as error:
            raise ConfigError(f"--encode {text!r}: {error}") from None
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


def _categories(
    file: OwnersTable, kinds: Mapping[str, str], described: PartyFile | None, progress: Progress
) -> dict[str, Encoding]:
    declared = {} if described is None else described.categories
    last = {name: (MISSING,) if kind == "one_hot:missing" else () for name, kind in kinds.items()}
    found: dict[str, set[str]] = {name: set() for name in kinds}
    row = 0
    for block in file.blocks((), list(kinds), "categories", progress):
        for name, seen in found.items():
            if name in declared:
                rows = np.arange(len(block[name])) + row + 1
                texts = (*declared[name], *last[name])
                refuse_texts(f"column {name!r}", block[name], f"categories.{name}", texts, rows)
            seen.update(pc.unique(block[name].cast(pa.string()).drop_null()).to_pylist())
            if len(seen) > MOST_CATEGORIES:
                raise DataError(
                    f"{file.path}: column {name!r} holds more than {MOST_CATEGORIES} different texts: if it "
                    f"identifies rows leave it out with --id {quote(name)}, else group them"
                )
        row += len(block[name])
    empty = next((name for name, seen in found.items() if not seen), None)
    if empty is not None:
        raise DataError(
            f"{file.path}: column {empty!r} holds no text in any row: leave it out with --id {quote(empty)}"
        )
    all_of = {name: declared.get(name) or in_order(found[name]) for name in kinds}
    return {
        n: Encoding(kind, (*(c for c in all_of[n] if c not in last[n]), *last[n]))
        for n, kind in kinds.items()
    }
