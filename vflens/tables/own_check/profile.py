"""What a party's file holds, column by column, in one pass and before it is read as described.

Nothing is refused here: :mod:`vflens.tables.own_check.flaws` says what is to be mended. Memory holds numbers
and different texts of few columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import DataError
from vflens.storage.arrow import in_numpy
from vflens.tables.description import PartyFile
from vflens.tables.encodings import Conversion
from vflens.tables.exact_numbers import as_floats, as_text, beyond_exact, is_text, large_integers
from vflens.tables.own_check.shelf import PART_ROWS, Chunks, a_shelf, joined
from vflens.tables.written.kinds import kind_of_times
from vflens.tables.written.numbers import PLAIN
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

    from vflens.tables.cells import TableFile

#: What a row of sums is called, in place of an id or a category.
TOTAL = (
    r"(?i)^\P{L}*(?:(?:grand|sub|zwischen|gesamt)[\s-]?)?(?:totals?|totale|total général|sum|summe|gesamt|"
    r"insgesamt|gesamtergebnis|ergebnis|somme|suma|soma|somma|summa|totaal|razem|itogo|итого|всего|合计|"
    r"mittelwert|durchschnitt|moyenne|promedio)\P{L}*$"
)
MANY = 20  # rows: fewer may all differ by chance
_PARTS = 64  # of a column that are joined, each of less than PART_ROWS


@dataclass(eq=False)
class ColumnProfile:
    """One column: ``missing`` and ``texts`` (no numbers) of its cells, counted; data rows count from 1.

    ``keeps_gaps``: an empty cell is a category, and no gap. ``times``: the kind that reads its dates,
    durations or times of day.
    """

    name: str
    kind: str | None
    categorical: bool
    keeps_gaps: bool
    rows: int = 0
    missing: int = 0
    texts: int = 0
    first_text: int = 0
    leading_zeros: int = 0
    rounded: int = 0
    times: str = ""
    head: str = ""  # the text of its first data row
    has_total: bool = False  # some text is :data:`TOTAL`
    numeric_below: bool = False  # all texts but the first have a digit
    _refused: str = ""
    _numbers: list[Array] = field(default_factory=list)
    _different: list[pa.Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._conversion = Conversion(self.name, self.kind)

    @property
    def present(self) -> int:
        """The cells that are not empty."""
        return self.rows - self.missing

    @property
    def refusal(self) -> str:
        """Why no run reads the column as described; "" if one does."""
        if self._refused:
            return self._refused
        try:
            self._conversion.finish()
        except DataError as error:
            return str(error)
        return ""

    @property
    def is_plain(self) -> bool:
        """Whether all cells so far are numbers, of which nothing is set."""
        return not (self.kind or self.categorical or self.times or self._refused or self._different)

    @property
    def mixed(self) -> bool:
        """Whether a part of the column held numbers alone: :meth:`different` lacks these."""
        return any(np.isfinite(part).any() for part in self._numbers)

    def numbers(self) -> Array:
        """The finite numbers, float64 (n,), in the order of the file."""
        found = self.cells()
        finite = np.isfinite(found)
        return found if finite.all() else found[finite]

    def cells(self) -> Array:
        """The numbers of all rows, float64 (n,), NaN where missing; of a column without texts."""
        if len(self._numbers) != 1:  # each flaw looks at all of them
            self._numbers = [np.concatenate([np.zeros(0), *self._numbers])]
        return self._numbers[0]

    def forget(self) -> None:
        """Give the numbers and texts back; what is counted of them stays."""
        import pyarrow.compute as pc

        texts = self.different()
        self.has_total = bool(pc.any(pc.match_substring_regex(texts, TOTAL)).as_py())
        digits = pc.sum(pc.match_substring_regex(texts, r"\d")).as_py() or 0
        numbers = bool(digits or self.mixed) and not self.categorical
        self.numeric_below = numbers and digits >= len(texts) - 1
        self._numbers, self._different = [], []

    def infinite(self) -> int:
        """How many numbers are infinite."""
        return int(np.count_nonzero(np.isinf(self.cells())))

    def different(self) -> pa.Array:
        """The different texts in the parts of the column that hold text, in their order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.unique(pa.chunked_array(self._different, pa.string()))

    def add(self, cells: pa.Array, first: int) -> Array:
        """Take up the next cells; which are empty, bool (n,)."""
        numbers = None
        if not first and len(cells) and is_text(cells.type):
            self.head = cells[0].as_py() or ""
        if self.kind is None and kind_of_times(cells.type):
            self.times = kind_of_times(cells.type)
        elif self.categorical or self._refused:
            self._add_texts(cells)
        else:
            numbers = self._add_numbers(cells, first)
        empty = _empty(cells) if numbers is None or self.kind else np.isnan(numbers)
        self.rows, self.missing = self.rows + len(cells), self.missing + int(empty.sum())
        return empty

    def _add_numbers(self, cells: pa.Array, first: int) -> Array | None:
        """Take up cells that may be numbers; these, NaN where missing."""
        import pyarrow as pa

        try:
            numbers = as_floats(cells) if self.kind is None else self._conversion.numbers(cells, first)
        except pa.ArrowException:
            self._add_mixed(cells, first)
            return None
        except DataError as error:
            self._refused = str(error)
            return None
        if self._conversion.fault:
            self._add_texts(cells)
        self._numbers.append(numbers)
        recent = self._numbers[-_PARTS:]
        if len(recent) == _PARTS and len(recent[0]) < PART_ROWS:  # many small blocks leave holes in the heap
            self._numbers[-_PARTS:] = [np.concatenate(recent)]
        if self.kind is None and is_text(cells.type):
            self.leading_zeros += _leading_zeros(cells)
        if self.kind is None and beyond_exact(numbers):
            self.rounded += _rounded(cells, numbers)
        return numbers

    def _add_mixed(self, cells: pa.Array, first: int) -> None:
        """Cells some of which are no numbers."""
        import pyarrow.compute as pc

        if not self._add_texts(cells):
            return
        text = in_numpy(pc.match_substring_regex(as_text(self.name, cells), PLAIN)) == 0
        if text.any() and not self.texts:
            self.first_text = first + 1 + int(np.argmax(text))
        self.texts += int(text.sum())

    def _add_texts(self, cells: pa.Array) -> bool:
        """Take up the different texts; whether there are any, and not lists or records."""
        import pyarrow.compute as pc

        try:
            self._different.append(pc.unique(as_text(self.name, cells).drop_null()))
        except DataError as error:
            self._refused = str(error)
        return not self._refused


@dataclass(frozen=True, eq=False)
class TableProfile:
    """The features of a file, in their order; ``rows`` of them, of which ``lost`` have a gap in some feature;
    of the ids so many are ``empty_ids``, repeat an earlier one or are :data:`TOTAL`. ``classes`` are the
    different labels.
    """

    rows: int
    lost: int
    empty_ids: int
    repeated_ids: int
    totals: int
    columns: tuple[ColumnProfile, ...]
    classes: tuple[str, ...] = ()


@dataclass(eq=False)
class _Taken:
    """What passes through a file took up so far: ids, ``classes``, ``columns``, and rows with ``gaps``."""

    spec: PartyFile
    columns: dict[str, ColumnProfile]
    label: str | None
    rows: int = 0
    ids: list[pa.Array] = field(default_factory=list)
    classes: dict[str, None] = field(default_factory=dict)
    gaps: list[Array] = field(default_factory=lambda: [np.zeros(0, np.int64)])

    def take(self, chunks: Chunks) -> Iterator[ColumnProfile]:
        """Take up ``chunks``; the column of each, but for ids and labels."""
        for first, name, cells in chunks:
            if name == self.spec.id_column:
                self.ids.append(as_text(name, cells.filter(_mask(~_empty(cells)))))
                self.rows += len(cells)
                continue
            if name == self.label:
                self.classes.update(dict.fromkeys(as_text(name, cells).unique().drop_null().to_pylist()))
                continue
            empty = self.columns[name].add(cells, first)
            # Small arrays would hold the heap of others.
            if empty.any() and not self.columns[name].keeps_gaps:
                self.gaps.append(first + np.flatnonzero(empty))
            yield self.columns[name]

    def take_plain(self, chunks: Chunks, texts: set[str], see: Callable[[ColumnProfile], None]) -> None:
        """Take up ``chunks`` of all columns but ``texts``, to which those with texts are added: they may fill
        the memory, and are read again, with few others.
        """
        with a_shelf() as shelf:
            for column in self.take(chunk for chunk in joined(chunks) if chunk[1] not in texts):
                if column.is_plain:
                    shelf.put(column.name, column.cells())
                    column._numbers = []
                else:
                    texts.add(column.name)
                    self.columns[column.name] = _new(self.spec, column.name)
            for column in (c for name, c in self.columns.items() if name not in texts):
                column._numbers = [shelf.take(column.name)]
                see(column)

    def whole(self, known: TableProfile | None = None) -> TableProfile:
        """What the file holds, once all of it is taken up; of ids what is ``known``."""
        lost = len(np.unique(np.concatenate(self.gaps)))
        columns, classes = tuple(self.columns.values()), tuple(self.classes)
        return replace(known or self._of_ids(), lost=lost, columns=columns, classes=classes)

    def _of_ids(self) -> TableProfile:
        import pyarrow as pa
        import pyarrow.compute as pc

        kept = pa.chunked_array(self.ids, pa.string())
        repeats = len(kept) - pc.count_distinct(kept).as_py()
        totals = pc.sum(pc.match_substring_regex(kept, TOTAL)).as_py() or 0
        return TableProfile(
            rows=self.rows,
            lost=0,
            empty_ids=self.rows - len(kept),
            repeated_ids=repeats,
            totals=totals,
            columns=(),
        )


def profile(
    spec: PartyFile,
    names: Sequence[str],
    cells: TableFile,
    see: Callable[[ColumnProfile], None] = lambda column: None,
    ids: TableProfile | None = None,
) -> TableProfile:
    """What ``cells`` hold: the features ``names``, the ids and the classes of ``spec``, all there.

    ``see`` gets each feature as soon as it is whole. ``ids`` is what an earlier reading found of the ids.
    """
    label = spec.label_column if spec.label_kind == "classes" else None
    taken = _Taken(spec, {name: _new(spec, name) for name in names}, label)

    def whole(some: Sequence[str]) -> None:
        for name in filter(taken.columns.__contains__, some):
            see(taken.columns[name])

    wanted = [*([spec.id_column] if ids is None else []), *names, *([] if label is None else [label])]
    texts = {name for name in names if not cells.is_long or not taken.columns[name].is_plain}
    if len(texts) < len(names):
        plain = [name for name in names if name not in texts]
        taken.take_plain(cells.chunks([n for n in wanted if n not in texts], plain=plain), texts, see)
        wanted = [name for name in names if name in texts]
    for _ in taken.take(cells.chunks(wanted, whole)):
        pass
    return taken.whole(ids)


def _new(spec: PartyFile, name: str) -> ColumnProfile:
    kind = spec.encode.get(name)
    return ColumnProfile(name, kind, name in spec.categorical, kind is not None and spec.has_missing(name))


def _empty(cells: pa.Array) -> Array:
    """Which cells are empty or NaN, bool (n,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(cells.type):
        return np.asarray(~(in_numpy(pc.binary_length(cells)) > 0))
    nan = pa.types.is_floating(cells.type)
    return np.asarray(in_numpy(pc.is_null(cells, nan_is_null=nan)) > 0)


def _mask(kept: Array) -> pa.BooleanArray:
    """``kept`` bool (n,) for Arrow, whose ``array`` would load pandas where that is installed."""
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(kept, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(kept), [None, bits])


def _leading_zeros(cells: pa.Array) -> int:
    """How many texts of numbers begin with a 0 that numbers lose; Arrow's tests take four times as long."""
    import pyarrow as pa

    _, ends, texts = cells.buffers()
    kind = np.int64 if pa.types.is_large_string(cells.type) else np.int32
    places = np.frombuffer(ends, kind)[cells.offset : cells.offset + len(cells) + 1]
    marks = np.frombuffer(texts or b"", np.uint8)
    starts = places[:-1][np.diff(places) > 1]
    zeros = starts[marks[starts] == ord("0")]
    return int(np.count_nonzero(marks[zeros + 1] != ord(".")))


def _rounded(cells: pa.Array, numbers: Array) -> int:
    """How many integers float64 rounds."""
    import pyarrow as pa

    at = np.flatnonzero(large_integers(cells))
    exact = cells.take(pa.array(at)).to_pylist()
    return sum(
        Decimal(text) != Decimal(number) for text, number in zip(exact, numbers[at].tolist(), strict=True)
    )
