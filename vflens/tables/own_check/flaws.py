"""*Your table first*: all that is to be mended in a party's own file, each with the line that mends it.

The flaws are the party's: they hold values of its table, and stay in its terminal and on its pages.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vflens.tables.description import PartyFile
from vflens.tables.encodings import MARKS, MOST_CATEGORIES, PLAIN, formats_of, marks_of, split_numbers
from vflens.tables.own_check.flaw import Flaw, a_flaw, key, mended_by, quoted
from vflens.tables.own_check.profile import ColumnProfile, TableProfile
from vflens.types import Array
from vflens.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

_TRIED = 10_000  # different texts
#: The middle 99 % of the values in less than this share of the range: a few others decide the scale.
_NARROW, _TAIL, _DRAWN = 0.05, 0.005, 1 << 16
_FILLED = ('missing = "mean" fills in numbers',)
_MANY = 20  # rows: fewer may all differ by chance
_UNITS = 5  # that a sentence names
_FaultOf: TypeAlias = Callable[[str, str], str]
#: Spaces and marks of a label, but none between digits; a hyphen between letters.
_LOOSE = re.compile(r"[\s_;:!?'\"`´]|(?<!\d)[.,]|[.,](?!\d)|(?<=[^\W\d_])[-–](?=[^\W\d_])")


def flaws(
    spec: PartyFile,
    table: TableProfile,
    fault_of: _FaultOf,
    nameless: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Flaw, ...]:
    """All of a table, those that refuse it first.

    Args:
        spec: its description.
        table: what it holds.
        fault_of: what keeps a column from being read as a kind, by its name; no other kind is proposed.
        nameless: the places of columns without a name.
    """
    found = [*_empty_ids(spec, table), *_repeated_ids(spec, table), *_gaps(spec, table), *_alike(spec, table)]
    for column in table.columns:
        if column.name in nameless:
            found.append(_nameless(column, nameless[column.name]))
        else:
            found += _of_column(spec, column, fault_of)
    return tuple(sorted(found, key=lambda flaw: not flaw.refused))


def _nameless(column: ColumnProfile, place: int) -> Flaw:
    own = f"column {place}"
    called = "" if column.name == own else f", pandas calls it {column.name}"
    remedy = f"{_left_out(column)}, or set id_column = {quoted(column.name)} if it identifies rows"
    return a_flaw("nameless", column.name, f"{own} has no name{called}", remedy, {"place": place})


def _alike(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    """Classes that differ in case, spaces, marks or the form of a number alone."""
    joined = len(set(map(_bare, table.classes)))
    if joined < len(table.classes):
        sentence = (
            f"{spec.label_column} holds {counted(len(table.classes), 'class', ',')}, {joined:,} without "
            "differences in case, spaces, marks and the form of numbers"
        )
        numbers = {"classes": len(table.classes), "joined": joined}
        yield a_flaw(
            "labels alike", spec.label_column or "", sentence, "write each class in one way", numbers
        )


def _bare(label: str) -> str:
    """``label`` without what people write in several ways."""
    if re.match(PLAIN, label):
        return repr(float(label) + 0.0)
    text = unicodedata.normalize("NFKC", label).casefold()
    return _LOOSE.sub("", text) or text


def _empty_ids(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    if table.empty_ids:
        sentence = f"{spec.id_column} is empty in {_of(table.empty_ids, table.rows)}"
        yield a_flaw(
            "empty ids", spec.id_column, sentence, "fill it in", {"empty": table.empty_ids}, refused=True
        )


def _repeated_ids(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    if table.repeated_ids:
        sentence = f"{spec.id_column} repeats an earlier id in {_of(table.repeated_ids, table.rows)}"
        remedy = "remove these rows, or set id_column to a column of unique ids"
        yield a_flaw(
            "repeated ids", spec.id_column, sentence, remedy, {"repeated": table.repeated_ids}, refused=True
        )


def _gaps(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    """What dropping rows with gaps costs."""
    if not table.lost:
        return
    by_column = {c.name: c.missing for c in table.columns if c.missing and not c.keeps_gaps}
    empty = [name for name, missing in by_column.items() if missing == table.rows]
    for name in empty:
        yield a_flaw("empty", name, f"{name} has no value", f"leave {name} out of columns", refused=True)
    if empty and spec.missing != "drop_row":
        return  # to drop rows would leave none
    counts = ", ".join(f"{name} {missing:,}" for name, missing in by_column.items())
    lost = _of(table.lost, table.rows)
    numbers = {"lost": table.lost, "rows": table.rows, "missing": by_column}
    kept, flags = _keeping(table, by_column)
    if spec.missing == "drop_row":
        sentence, remedy = f"{lost} are dropped for gaps: {counts}", [*kept, *_FILLED]
        yield a_flaw("dropped rows", "", sentence, ", ".join(remedy), numbers, flag=flags)
        return
    sentence, remedy = f"{lost} have gaps, {counts}", ['missing = "drop_row" drops them', *_FILLED, *kept]
    flag, refused = f"--missing drop_row {flags}".rstrip(), spec.missing == "refuse"
    yield a_flaw("gaps", "", sentence, ", ".join(remedy), numbers, refused=refused, flag=flag)


def _keeping(table: TableProfile, gaps: Iterable[str]) -> tuple[list[str], str]:
    """The lines that keep rows with gaps in texts, and the same as flags of an audit."""
    texts = [c.name for c in table.columns if c.name in gaps and (c.categorical or c.texts > c.present / 2)]
    lines = [f'encode.{key(name)} = "one_hot:missing" keeps rows without {name}' for name in texts]
    return lines, " ".join(f"--encode {shlex.quote(f'{name}=one_hot:missing')}" for name in texts)


def _of_column(spec: PartyFile, column: ColumnProfile, fault_of: _FaultOf) -> Iterator[Flaw]:
    if column.refusal:
        yield a_flaw("unreadable", column.name, column.refusal, _left_out(column), refused=True)
    elif column.times:
        what = "dates" if column.times == "date" else "durations or times of day, which are read as days"
        yield mended_by(
            "date" if column.times == "date" else "duration", column.name, f"holds {what}", column.times
        )
    elif column.categorical:
        yield from _categories(spec, column)
    elif column.texts:
        yield _text(column, fault_of)
    else:
        yield from _numbers(spec, column)


def _categories(spec: PartyFile, column: ColumnProfile) -> Iterator[Flaw]:
    different = len(column.different())
    if different > MOST_CATEGORIES:
        yield _many_texts(column, different)
    elif different == 1 and column.name not in spec.categories:
        yield _constant(column, quoted(column.different()[0].as_py()))


def _text(column: ColumnProfile, fault_of: _FaultOf) -> Flaw:
    """What a column of text is: money, dates, an identifier, or categories."""
    import pyarrow.compute as pc

    texts = column.different()
    tried = texts.filter(pc.invert(pc.match_substring_regex(texts, PLAIN))).slice(0, _TRIED)
    if marks := marks_of(tried):
        return _number_text(column, texts, tried, marks, fault_of)
    what = f"holds dates as text, such as {_masked(tried)}"
    if formats := formats_of(tried):
        return _proposed("date", column, what, [f"date:{how}" for how in formats], fault_of)
    if formats_of(tried, short=True):
        sentence, remedy = f"{column.name} {what}, with years of two digits", "of which century? Write four"
        return a_flaw("two-digit years", column.name, sentence, remedy, refused=True)
    return _words(column, texts)


def _words(column: ColumnProfile, texts: pa.Array) -> Flaw:
    """A column whose ``texts`` are no numbers and no dates."""
    if column.texts < column.present / 2:
        return _some_text(column)
    if len(texts) == column.present >= _MANY:
        return _id_like(column, "holds another text in each row", refused=True)
    if len(texts) > MOST_CATEGORIES:
        return _many_texts(column, len(texts))
    return mended_by(
        "text", column.name, f"holds text, {len(texts):,} different", "one_hot", {"different": len(texts)}
    )


def _some_text(column: ColumnProfile) -> Flaw:
    texts = _of(column.texts, column.present, "cells")
    sentence = f"{column.name} holds numbers, but text in {texts}, first in data row {column.first_text}"
    remedy = "correct these cells, or leave them empty and set missing"
    return a_flaw("text among numbers", column.name, sentence, remedy, {"texts": column.texts}, refused=True)


def _many_texts(column: ColumnProfile, different: int) -> Flaw:
    sentence = (
        f"{column.name} holds {different:,} different texts, categories are {MOST_CATEGORIES:,} at most"
    )
    remedy = f"group them, or {_left_out(column)}"
    return a_flaw("many categories", column.name, sentence, remedy, {"different": different}, refused=True)


def _numbers(spec: PartyFile, column: ColumnProfile) -> Iterator[Flaw]:
    if column.rounded:
        cells = _of(column.rounded, column.present, "cells")
        sentence = f"{column.name} holds integers beyond 2^53 that float64 rounds in {cells}"
        remedy = f"{_left_out(column)}, or store it with a decimal point"
        yield a_flaw(
            "huge integers", column.name, sentence, remedy, {"rounded": column.rounded}, refused=True
        )
    if infinite := column.infinite():
        sentence = f"{column.name} is infinite in {_of(infinite, column.present, 'cells')}"
        yield a_flaw(
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
        return a_flaw("leading zeros", column.name, sentence, remedy, {"cells": column.leading_zeros})
    return mended_by(
        "leading zeros", column.name, what, "one_hot", {"cells": column.leading_zeros}, refused=False
    )


def _constant(column: ColumnProfile, value: str) -> Flaw:
    return a_flaw("constant", column.name, f"{column.name} never varies, it is {value}", _left_out(column))


def _id_like(column: ColumnProfile, what: str, *, refused: bool = False) -> Flaw:
    remedy = f"if it identifies rows {_left_out(column)}, or set id_column = {quoted(column.name)}"
    return a_flaw("id-like", column.name, f"{column.name} {what}", remedy, refused=refused)


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
    yield a_flaw(
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


def _number_text(
    column: ColumnProfile, texts: pa.Array, tried: pa.Array, marks: list[str], fault_of: _FaultOf
) -> Flaw:
    """Numbers of one unit, or of several, which are no numbers of one column."""
    units = [unit or "none" for unit in split_numbers(texts, marks[0])[0].unique().drop_null().to_pylist()]
    if len(units) > 1:
        sentence = f"{column.name} holds numbers in {len(units)} units, {', '.join(units[:_UNITS])}"
        return a_flaw("several units", column.name, sentence, "give all cells one unit", refused=True)
    kinds = ["number" if how == next(iter(MARKS)) else f"number:{how}" for how in marks]
    what = f"holds numbers as text, such as {_masked(tried)}"
    return _proposed("number as text", column, what, kinds, fault_of)


def _proposed(kind: str, column: ColumnProfile, what: str, encodes: list[str], fault_of: _FaultOf) -> Flaw:
    """A flaw that one of ``encodes`` mends, if it reads the whole column; else what to correct first."""
    faults = {encode: fault_of(column.name, encode) for encode in encodes}
    if fit := [encode for encode, fault in faults.items() if not fault]:
        also = f" (or {fit[1]})" if len(fit) > 1 else ""
        return mended_by(kind, column.name, f"{what}{also}", fit[0])
    sentence = f"{column.name} {what}, but {faults[encodes[0]]}"
    remedy = f"correct or empty these cells, then set encode.{key(column.name)} = {quoted(encodes[0])}"
    return a_flaw(kind, column.name, sentence, remedy, refused=True)


def _masked(texts: pa.Array) -> str:
    """The first of ``texts``, every digit a 9: its form, not its value."""
    return re.sub(r"\d", "9", texts[0].as_py())


def _left_out(column: ColumnProfile) -> str:
    return f"leave {column.name} out of columns"


def _of(count: int, total: int, what: str = "rows") -> str:
    return f"{count:,} of {total:,} {what}" + (f" ({100 * count / total:.2g} %)" if count < total else "")
