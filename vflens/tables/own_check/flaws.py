"""*Your table first*: all that is to be mended in a party's own file, each with the line that mends it.

The flaws are the party's: they hold values of its table, and stay in its terminal and on its pages.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from vflens.tables.description import PartyFile
from vflens.tables.encodings import MOST_CATEGORIES
from vflens.tables.own_check.flaw import Flaw, a_flaw, constant, key, left_out, mended_by, of, quoted
from vflens.tables.own_check.numbers import of_numbers
from vflens.tables.own_check.profile import TOTAL, ColumnProfile, TableProfile
from vflens.tables.own_check.texts import many_texts, of_text
from vflens.tables.reading import WholeColumns
from vflens.tables.written.numbers import PLAIN
from vflens.words import counted

_RARELY, _NAMED = 0.05, 3  # of the rows are totals; columns that a sentence names
_UNIT = re.compile(r"(?:10\^?\d+/)?(?=.*[^\W\d_]|.*[%°‰])\D+")  # a word or mark without digits
_FILLED = ('missing = "mean" fills in numbers',)
#: Spaces and marks of a label, but none between digits; a hyphen between letters.
_LOOSE = re.compile(r"[\s_;:!?'\"`´]|(?<!\d)[.,]|[.,](?!\d)|(?<=[^\W\d_])[-–](?=[^\W\d_])")


def flaws(
    spec: PartyFile, table: TableProfile, tries: WholeColumns, of_columns: Iterable[Flaw]
) -> tuple[Flaw, ...]:
    """All of a ``table`` that ``spec`` describes and :func:`of_column` of its columns, those that refuse it
    first; ``tries`` counts in whole columns.
    """
    of_rows = [_empty_ids(spec, table), _repeated_ids(spec, table), _gaps(spec, table), _alike(spec, table)]
    of_rows += [_totals(spec, table, tries), _unit_row(table)]
    return tuple(sorted(chain(*of_rows, of_columns), key=lambda flaw: not flaw.refused))


def is_sound(spec: PartyFile, column: ColumnProfile) -> bool:
    """Whether ``column``, which has no flaw, holds a number in each row, of which ``spec`` says nothing: no
    reading refuses it.
    """
    described = (spec.bounds, spec.alphabets, spec.pixels, spec.encode, spec.empty)
    odd = "=" in column.name or any(column.name in of for of in described)  # a = may be of a one-hot column
    return not odd and len(column.numbers()) == column.rows > 0


def _nameless(column: ColumnProfile, place: int) -> Flaw:
    own = f"column {place}"
    called = "" if column.name == own else f", pandas calls it {column.name}"
    remedy = f"{left_out(column.name)}, or set id_column = {quoted(column.name)} if it identifies rows"
    return a_flaw("nameless", column.name, f"{own} has no name{called}", remedy, {"place": place})


def _alike(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    """Classes that differ in case, spaces, marks or the form of a number alone."""
    yield from _of_labels(spec.label_column or "", table.classes, "class")


def _of_labels(column: str, labels: Sequence[str], one: str) -> Iterator[Flaw]:
    joined = len(set(map(_bare, labels)))
    if joined < len(labels):
        sentence = (
            f"{column} holds {counted(len(labels), one, ',')}, {joined:,} without "
            "differences in case, spaces, marks and the form of numbers"
        )
        numbers = {"classes": len(labels), "joined": joined}
        yield a_flaw("labels alike", column, sentence, f"write each {one} in one way", numbers)


def _bare(label: str) -> str:
    """``label`` without what people write in several ways."""
    if re.match(PLAIN, point := re.sub(r",(?=\d{1,2}\s*$)", ".", label)):
        return repr(float(point) + 0.0)
    text = unicodedata.normalize("NFKC", label).casefold()
    return _LOOSE.sub("", text) or text


def _empty_ids(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    if table.empty_ids:
        sentence = f"{spec.id_column} is empty in {of(table.empty_ids, table.rows)}"
        yield a_flaw(
            "empty ids", spec.id_column, sentence, "fill it in", {"empty": table.empty_ids}, refused=True
        )


def _repeated_ids(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    if table.repeated_ids:
        sentence = f"{spec.id_column} repeats an earlier id in {of(table.repeated_ids, table.rows)}"
        remedy = "remove these rows, or set id_column to a column of unique ids"
        yield a_flaw(
            "repeated ids", spec.id_column, sentence, remedy, {"repeated": table.repeated_ids}, refused=True
        )


def _totals(spec: PartyFile, table: TableProfile, tries: WholeColumns) -> Iterator[Flaw]:
    """Rows that are called a sum of others; where many are, the word is a category."""
    counts = {spec.id_column: table.totals}
    counts |= {c.name: tries.count(c.name, TOTAL) for c in table.columns if c.has_total}
    name = max(counts, key=lambda name: (counts[name] <= max(1, table.rows * _RARELY), counts[name]))
    if 0 < counts[name] <= max(1, table.rows * _RARELY):
        sentence = f"{name} calls {of(counts[name], table.rows)} a total"
        yield a_flaw("total rows", "", sentence, "no person stands there: delete such rows of the file")


def _unit_row(table: TableProfile) -> Iterator[Flaw]:
    """A first row that says in what the numbers below it are measured."""
    numeric = [column for column in table.columns if column.numeric_below]
    named = [column.name for column in numeric if _UNIT.fullmatch(column.head.strip())]
    if named and 2 * len(named) >= len(numeric):
        many = f"{counted(len(named), 'column')} of numbers, such as {', '.join(named[:_NAMED])}"
        sentence = f"data row 1 holds words in {many}, as a row of units does, or of names below a title"
        yield a_flaw("unit row", "", sentence, "delete it, or the lines above it, if it is no person's row")


def _gaps(spec: PartyFile, table: TableProfile) -> Iterator[Flaw]:
    """What dropping rows with gaps costs."""
    if not table.lost:
        return
    by_column = {c.name: c.missing for c in table.columns if c.missing and not c.keeps_gaps}
    empty = [name for name, missing in by_column.items() if missing == table.rows]
    for name in empty:
        yield a_flaw("empty", name, f"{name} has no value", left_out(name), refused=True)
    if empty and spec.missing != "drop_row":
        return  # to drop rows would leave none
    counts = ", ".join(f"{name} {missing:,}" for name, missing in by_column.items())
    lost = of(table.lost, table.rows)
    numbers = {"lost": table.lost, "rows": table.rows, "missing": by_column}
    kept, flags = _keeping(table, by_column)
    if spec.missing == "drop_row":
        sentence, remedy = f"{lost} are dropped for gaps: {counts}", [*kept, *_FILLED]
        yield a_flaw("dropped rows", "", sentence, ", ".join(remedy), numbers, flag=flags)
        return
    sentence, remedy = f"{lost} have gaps, {counts}", ['missing = "drop_row" drops them', *_FILLED, *kept]
    flag = f"--missing drop_row {flags}".rstrip()
    words = [c.name for c in table.columns if c.name in by_column and c.categorical]  # have no mean
    mends = {"missing": "mean", "encode": dict.fromkeys(words, "one_hot:missing")}
    refused = bool(words) or spec.missing == "refuse"
    yield a_flaw("gaps", "", sentence, ", ".join(remedy), numbers, refused=refused, flag=flag, mends=mends)


def _keeping(table: TableProfile, gaps: Iterable[str]) -> tuple[list[str], str]:
    """The lines that keep rows with gaps in texts, and the same as flags of an audit."""
    texts = [c.name for c in table.columns if c.name in gaps and (c.categorical or c.texts > c.present / 2)]
    lines = [f'encode.{key(name)} = "one_hot:missing" keeps rows without {name}' for name in texts]
    return lines, " ".join(f"--encode {shlex.quote(f'{name}=one_hot:missing')}" for name in texts)


def of_column(
    spec: PartyFile, column: ColumnProfile, tries: WholeColumns, nameless: Mapping[str, int]
) -> Iterator[Flaw]:
    """All of one ``column``; ``tries`` what of it fits a kind, for no other is proposed. ``nameless`` are the
    places of columns without a name.
    """
    if column.name in nameless:
        yield _nameless(column, nameless[column.name])
    elif column.refusal:
        yield a_flaw("unreadable", column.name, column.refusal, left_out(column.name), refused=True)
    elif column.times:
        what = "dates" if column.times == "date" else "durations or times of day, which are read as days"
        yield mended_by(
            "date" if column.times == "date" else "duration", column.name, f"holds {what}", column.times
        )
    elif column.categorical:
        yield from _categories(spec, column)
    elif column.texts:
        yield of_text(column, tries)
    else:
        yield from of_numbers(spec, column, tries)


def _categories(spec: PartyFile, column: ColumnProfile) -> Iterator[Flaw]:
    different = len(column.different())
    if different > MOST_CATEGORIES:
        yield many_texts(column, different)
    elif different == 1 and column.name not in spec.categories and not (column.keeps_gaps and column.missing):
        yield constant(column.name)
    else:
        yield from _of_labels(column.name, column.different().to_pylist(), "text")
