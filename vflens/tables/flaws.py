"""*Your table first*: all that is to be mended in a party's own file, each with the line that mends it.

The flaws are the party's: they hold values of its table, and stay in its terminal and on its pages.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from vflens.tables.description import PartyFile
from vflens.tables.encodings import MARKS, MOST_CATEGORIES, PLAIN, formats_of, marks_of, split_numbers
from vflens.tables.profile import ColumnProfile, TableProfile
from vflens.types import Array, Document

if TYPE_CHECKING:
    import pyarrow as pa

_TRIED = 10_000  # different texts
#: The middle 99 % of the values in less than this share of the range: a few others decide the scale.
_NARROW, _TAIL, _DRAWN = 0.05, 0.005, 1 << 16
_FILLED = ('missing = "mean" fills in numbers',)
_NONE: Document = {}
#: Kinds of flaws whose columns a run is better without.
LEFT_OUT = ("constant", "id-like", "many categories", "unreadable", "huge integers")
_MANY = 20  # rows: fewer may all differ by chance
_UNITS = 5  # that a sentence names


@dataclass(frozen=True)
class Flaw:
    """One of :func:`flaws`: its ``kind``, a sentence about a ``column`` ("" of the rows), what mends it.

    ``remedy`` is a line of the party's TOML file or says what to do; ``flag`` is the same for
    ``vflens audit``, "" where it has none. ``numbers`` are those of the sentence.
    ``refused``: as described, no run reads it.
    """

    kind: str
    column: str
    sentence: str
    remedy: str
    flag: str
    numbers: Document
    refused: bool

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}" + (f" (audit: {self.flag})" if self.flag else "")


@dataclass(frozen=True)
class TableCheck:
    """All flaws in ``file``, a table of ``rows`` with these ``features``."""

    file: str
    rows: int
    features: tuple[str, ...]
    flaws: tuple[Flaw, ...]

    def lines(self) -> list[str]:
        """For people: a line for each flaw, then the features without those to be left out."""
        left_out = {flaw.column for flaw in self.flaws if flaw.kind in LEFT_OUT}
        kept = [name for name in self.features if name not in left_out]
        if not left_out or not kept:
            return [str(flaw) for flaw in self.flaws]
        flag = f"--columns {shlex.quote(','.join(kept))}"
        rest = f"without these columns: columns = [{', '.join(map(_quoted, kept))}] (audit: {flag})"
        return [*map(str, self.flaws), rest]

    def record(self) -> Document:
        """For ``--json``."""
        return {**asdict(self), "lines": self.lines()}


def flaws(spec: PartyFile, table: TableProfile) -> tuple[Flaw, ...]:
    """All of a table, those that refuse it first."""
    found = [*_empty_ids(spec, table), *_repeated_ids(spec, table), *_gaps(spec, table)]
    for column in table.columns:
        found += _of_column(spec, column)
    return tuple(sorted(found, key=lambda flaw: not flaw.refused))


def _empty_ids(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    if table.empty_ids:
        sentence = f"{spec.id_column} is empty in {_of(table.empty_ids, table.rows)}"
        yield _flaw(
            "empty ids", spec.id_column, sentence, "fill it in", {"empty": table.empty_ids}, refused=True
        )


def _repeated_ids(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    if table.repeated_ids:
        sentence = f"{spec.id_column} repeats an earlier id in {_of(table.repeated_ids, table.rows)}"
        remedy = "remove these rows, or set id_column to a column of unique ids"
        yield _flaw(
            "repeated ids", spec.id_column, sentence, remedy, {"repeated": table.repeated_ids}, refused=True
        )


def _gaps(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    """What dropping rows with gaps costs."""
    if not table.lost:
        return
    by_column = {c.name: c.missing for c in table.columns if c.missing and not c.keeps_gaps}
    empty = [name for name, missing in by_column.items() if missing == table.rows]
    for name in empty:
        yield _flaw("empty", name, f"{name} has no value", f"leave {name} out of columns", refused=True)
    if empty and spec.missing != "drop_row":
        return  # to drop rows would leave none
    counts = ", ".join(f"{name} {missing:,}" for name, missing in by_column.items())
    lost = _of(table.lost, table.rows)
    numbers = {"lost": table.lost, "rows": table.rows, "missing": by_column}
    kept, flags = _keeping(table, by_column)
    if spec.missing == "drop_row":
        sentence, remedy = f"{lost} are dropped for gaps: {counts}", [*kept, *_FILLED]
        yield _flaw("dropped rows", "", sentence, ", ".join(remedy), numbers, flag=flags)
        return
    sentence, remedy = f"{lost} have gaps, {counts}", ['missing = "drop_row" drops them', *_FILLED, *kept]
    flag, refused = f"--missing drop_row {flags}".rstrip(), spec.missing == "refuse"
    yield _flaw("gaps", "", sentence, ", ".join(remedy), numbers, refused=refused, flag=flag)


def _keeping(table: TableProfile, gaps: Iterable[str]) -> tuple[list[str], str]:
    """The lines that keep rows with gaps in texts, and the same as flags of an audit."""
    texts = [c.name for c in table.columns if c.name in gaps and (c.categorical or c.texts > c.present / 2)]
    lines = [f'encode.{_key(name)} = "one_hot:missing" keeps rows without {name}' for name in texts]
    return lines, " ".join(f"--encode {shlex.quote(f'{name}=one_hot:missing')}" for name in texts)


def _of_column(spec: PartyFile, column: ColumnProfile) -> Iterator[Flaw]:
    if column.refusal:
        yield _flaw("unreadable", column.name, column.refusal, _left_out(column), refused=True)
    elif column.is_date:
        yield _encoded("date", column, "holds dates", "date")
    elif column.categorical:
        yield from _categories(spec, column)
    elif column.texts:
        yield _text(column)
    else:
        yield from _numbers(spec, column)


def _categories(spec: PartyFile, column: ColumnProfile) -> Iterator[Flaw]:
    different = len(column.different())
    if different > MOST_CATEGORIES:
        yield _many_texts(column, different)
    elif different == 1 and column.name not in spec.categories:
        yield _constant(column, _quoted(column.different()[0].as_py()))


def _text(column: ColumnProfile) -> Flaw:
    """What a column of text is: money, dates, an identifier, or categories."""
    import pyarrow.compute as pc

    texts = column.different()
    tried = texts.filter(pc.invert(pc.match_substring_regex(texts, PLAIN))).slice(0, _TRIED)
    if kinds := marks_of(tried):
        return _number_text(column, texts, tried, kinds)
    if formats := formats_of(tried):
        also = f" (or date:{formats[1]})" if len(formats) > 1 else ""
        return _encoded(
            "date", column, f"holds dates as text, such as {_masked(tried)}{also}", f"date:{formats[0]}"
        )
    if column.texts < column.present / 2:
        return _some_text(column)
    if len(texts) == column.present >= _MANY:
        return _id_like(column, "holds another text in each row", refused=True)
    if len(texts) > MOST_CATEGORIES:
        return _many_texts(column, len(texts))
    return _encoded(
        "text", column, f"holds text, {len(texts):,} different", "one_hot", {"different": len(texts)}
    )


def _some_text(column: ColumnProfile) -> Flaw:
    texts = _of(column.texts, column.present, "cells")
    sentence = f"{column.name} holds numbers, but text in {texts}, first in data row {column.first_text}"
    remedy = "correct these cells, or leave them empty and set missing"
    return _flaw("text among numbers", column.name, sentence, remedy, {"texts": column.texts}, refused=True)


def _many_texts(column: ColumnProfile, different: int) -> Flaw:
    sentence = (
        f"{column.name} holds {different:,} different texts, categories are {MOST_CATEGORIES:,} at most"
    )
    remedy = f"group them, or {_left_out(column)}"
    return _flaw("many categories", column.name, sentence, remedy, {"different": different}, refused=True)


def _numbers(spec: PartyFile, column: ColumnProfile) -> Iterator[Flaw]:
    if column.rounded:
        cells = _of(column.rounded, column.present, "cells")
        sentence = f"{column.name} holds integers beyond 2^53 that float64 rounds in {cells}"
        remedy = f"{_left_out(column)}, or store it with a decimal point"
        yield _flaw("huge integers", column.name, sentence, remedy, {"rounded": column.rounded}, refused=True)
    if infinite := column.infinite():
        sentence = f"{column.name} is infinite in {_of(infinite, column.present, 'cells')}"
        yield _flaw(
            "infinite", column.name, sentence, "correct these cells", {"infinite": infinite}, refused=True
        )
    if column.leading_zeros:
        yield _zeros(column)
    values = column.numbers()
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    if low == high:
        yield _constant(column, f"{low:g}")
    elif _numbers_rows(values):
        yield _id_like(column, "holds another whole number in each row")
    elif column.name not in spec.bounds:
        yield from _outlier(column, values, low, high)


def _zeros(column: ColumnProfile) -> Flaw:
    cells = _of(column.leading_zeros, column.present, "cells")
    what = f"begins with a 0 in {cells}, which a number loses"
    different = len(np.unique(column.numbers()))
    if different > MOST_CATEGORIES:
        sentence = (
            f"{column.name} {what}; {different:,} different are more than {MOST_CATEGORIES:,} categories"
        )
        remedy = f"group them, such as by their first digits, or {_left_out(column)}"
        return _flaw("leading zeros", column.name, sentence, remedy, {"cells": column.leading_zeros})
    return _encoded("leading zeros", column, what, "one_hot", {"cells": column.leading_zeros}, refused=False)


def _constant(column: ColumnProfile, value: str) -> Flaw:
    return _flaw("constant", column.name, f"{column.name} never varies, it is {value}", _left_out(column))


def _id_like(column: ColumnProfile, what: str, *, refused: bool = False) -> Flaw:
    remedy = f'if it identifies rows {_left_out(column)}, or set id_column = "{column.name}"'
    return _flaw("id-like", column.name, f"{column.name} {what}", remedy, refused=refused)


def _outlier(column: ColumnProfile, values: Array, low: float, high: float) -> Iterator[Flaw]:
    """A few values that make the scale of all others: their scaled errors then say nothing."""
    drawn = values[:: -(-len(values) // _DRAWN)]
    first, last = np.quantile(drawn, [_TAIL, 1 - _TAIL], method="nearest").tolist()
    part = (last - first) / (high - low) if np.isfinite(high - low) else 0.0
    if first == last or part >= _NARROW:
        return
    share = float(np.mean((values >= first) & (values <= last)))
    sentence = (
        f"{100 * share:.4g} % of {column.name} lie in {100 * part:.2g} % of its range ({first:.7g} to "
        f"{last:.7g} of {low:.7g} to {high:.7g}); the others decide the scale, and scaled errors say little"
    )
    far = high if high - last > first - low else low
    remedy = f"correct {far:.7g}, or leave such cells empty if it stands for a missing value"
    yield _flaw(
        "outlier", column.name, sentence, remedy, {"share": share, "part": part, "first": first, "last": last}
    )


def _numbers_rows(values: Array) -> bool:
    """Whether these are whole numbers, all different, that rise, lie close together, or are very many.

    Few are tried first: most columns repeat some.
    """
    few = values[:_TRIED]
    if len(few) < _MANY or (few != np.rint(few)).any() or len(np.unique(few)) < len(few):
        return False
    if len(np.unique(values)) < len(values) or (values != np.rint(values)).any():
        return False
    close = np.ptp(values) < 2 * len(values)
    return bool((np.diff(values) > 0).all() or close or len(values) > _TRIED)


def _number_text(column: ColumnProfile, texts: pa.Array, tried: pa.Array, hows: Sequence[str]) -> Flaw:
    """Numbers of one unit, or of several, which are no numbers of one column."""
    units = [unit or "none" for unit in split_numbers(texts, hows[0])[0].unique().drop_null().to_pylist()]
    if len(units) > 1:
        sentence = f"{column.name} holds numbers in {len(units)} units, {', '.join(units[:_UNITS])}"
        return _flaw("several units", column.name, sentence, "give all cells one unit", refused=True)
    kinds = ["number" if how == next(iter(MARKS)) else f"number:{how}" for how in hows]
    also = f" (or {kinds[1]})" if len(kinds) > 1 else ""
    return _encoded(
        "number as text", column, f"holds numbers as text, such as {_masked(tried)}{also}", kinds[0]
    )


def _masked(texts: pa.Array) -> str:
    """The first of ``texts``, every digit a 9: its form, not its value."""
    return re.sub(r"\d", "9", texts[0].as_py())


def _encoded(
    kind: str,
    column: ColumnProfile,
    what: str,
    encode: str,
    numbers: Document = _NONE,
    *,
    refused: bool = True,
) -> Flaw:
    """A flaw that ``encode`` mends."""
    remedy = f"encode.{_key(column.name)} = {_quoted(encode)}"
    flag = f"--encode {shlex.quote(f'{column.name}={encode}')}"
    return Flaw(
        kind=kind,
        column=column.name,
        sentence=f"{column.name} {what}",
        remedy=remedy,
        flag=flag,
        numbers=numbers,
        refused=refused,
    )


def _flaw(
    kind: str,
    column: str,
    sentence: str,
    remedy: str,
    numbers: Document = _NONE,
    *,
    refused: bool = False,
    flag: str = "",
) -> Flaw:
    return Flaw(kind, column, sentence, remedy, flag=flag, numbers=numbers, refused=refused)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _left_out(column: ColumnProfile) -> str:
    return f"leave {column.name} out of columns"


def _of(count: int, total: int, what: str = "rows") -> str:
    return f"{count:,} of {total:,} {what}" + (f" ({100 * count / total:.2g} %)" if count < total else "")
