"""How cells of a column become numbers: the kinds that ``encode.COLUMN`` of a party's file takes.

======================  ==============================================================================
kind                    the column becomes
======================  ==============================================================================
``ordinal``             the codes 0, 1, … of its categories
``one_hot``             a column of 0 and 1 for each category
``one_hot:missing``     the same, with the category *missing* for empty cells
``number``              the numbers of texts such as ``€ 1,234.50`` or ``12 %``, without their unit
``number:1.234,5``      the same with other marks; the kind shows how 1234.5 is written
                        or the days that a parquet file's durations and times of day take
``date``                days since 1970 of texts such as ``2024-02-29``, or of a parquet file's dates
``date:%d/%m/%Y``       the same with another format (that of Python's ``datetime.strptime``)
======================  ==============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import DataError
from vflens.names import did_you_mean
from vflens.storage.arrow import in_numpy
from vflens.tables.exact_numbers import as_floats, beyond_exact, is_text, refuse_rounded
from vflens.tables.kinds import days, kind_of_times
from vflens.tables.places import in_rows
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: A text column with more different texts is no column of categories.
MOST_CATEGORIES = 1000
_DEFAULTS = {"number": "1,234.5", "date": "%Y-%m-%d"}
#: A number in text as every reader takes it.
PLAIN = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
MISSING = "missing"  # the category of empty cells
_CATEGORIES = ("ordinal", "one_hot", f"one_hot:{MISSING}")
#: How 1234.5 is written: the marks of thousands and of decimals.
MARKS = {"1,234.5": (",", "."), "1.234,5": (".", ","), "1 234,5": (" ", ","), "1'234.5": ("'", ".")}
_BLANK = r"[\s\x{a0}\x{202f}]"  # with the spaces that do not break a line
#: Codes of money (ISO 4217) that tables have; any three letters would make 10 of the code ICD10.
_MONEY = (
    "AED|ARS|AUD|BDT|BGN|BHD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|DZD|EGP|ETB|EUR|GBP|GEL|"
    "GHS|HKD|HUF|IDR|ILS|INR|IQD|IRR|ISK|JOD|JPY|KES|KRW|KWD|KZT|LBP|LKR|MAD|MXN|MYR|"
    "NGN|NOK|NZD|OMR|PEN|PHP|PKR|PLN|QAR|RON|RSD|RUB|SAR|SEK|SGD|THB|TND|TRY|TWD|TZS|"
    "UAH|UGX|USD|UYU|UZS|VND|XAF|XOF|ZAR|ZMW"
)
_UNIT = rf"\p{{Sc}}|{_MONEY}"
_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M:%S.%f")
_EPOCH, _TRIED = datetime(1970, 1, 1, tzinfo=UTC), datetime(2001, 2, 3, tzinfo=UTC)
_INFINITE = r"(?i)^\s*[+-]?(inf|infinity|nan)\s*$"


def checked_kind(kind: str) -> str:
    """``kind``, if it is one of the table above.

    Raises:
        ValueError: it is none.
    """
    name, _, how = kind.partition(":")
    if kind in (*_CATEGORIES, "number", "date") or (name == "number" and how in MARKS):
        return kind
    if name == "date" and _is_format(how):
        if not _is_format(how, 1900):
            raise ValueError(f"{kind!r} has years of two digits, of which century? Write them with four (%Y)")
        return kind
    near = did_you_mean(kind, (*_CATEGORIES, "number", "date", *(f"number:{marks}" for marks in MARKS)))
    raise ValueError(
        f"give {', '.join(_CATEGORIES)}, number, date, number: and how 1234.5 is written "
        f"({', '.join(MARKS)}), or date: and a format such as %d/%m/%Y, not {kind!r}{near}"
    )


def column_and_kind(flag: str) -> tuple[str, str]:
    """Of a flag COLUMN=KIND, or KIND with the column ""; "one-hot" is one_hot."""
    column, _, kind = flag.rpartition("=")
    return column, "one_hot" if kind == "one-hot" else kind


def is_categorical(kind: str) -> bool:
    """Whether ``kind`` makes codes of categories."""
    return kind in _CATEGORIES


def number_pattern(how: str) -> str:
    """A regular expression of numbers with marks and a unit before or behind; groups sign, before, minus,
    whole, part, after.
    """
    thousands, decimal = (re.escape(mark) for mark in MARKS[how])
    mark = r"[ \x{a0}\x{202f}]" if thousands.strip("\\") == " " else thousands
    return (
        rf"^{_BLANK}*(?P<sign>[+-]?)(?P<before>{_UNIT}|){_BLANK}*(?P<minus>[+-]?)"
        rf"(?P<whole>\d{{1,3}}(?:{mark}\d{{3}})+|\d+)(?P<part>(?:{decimal}\d+)?)"
        rf"{_BLANK}*(?P<after>{_UNIT}|%|){_BLANK}*$"
    )


def split_numbers(cells: pa.Array, how: str) -> tuple[pa.Array, pa.Array]:
    """The units of texts that :func:`number_pattern` fits, and texts such as "-1234.5"; null of others."""
    import pyarrow.compute as pc

    found = pc.extract_regex(cells, number_pattern(how))
    sign, before, minus, whole, part, after = (pc.struct_field(found, [j]) for j in range(6))
    whole = pc.replace_substring_regex(whole, r"\D", "")
    part = pc.replace_substring_regex(part, r"^\D", ".")
    units = pc.binary_join_element_wise(before, after, "")
    return units, pc.binary_join_element_wise(sign, minus, whole, part, "")


def marks_of(texts: pa.Array) -> list[str]:
    """The marks that read nearly all of these different ``texts`` as numbers, at most two; the second ones
    read as many, and others.
    """
    read = {how: split_numbers(texts, how)[1] for how in MARKS}
    how = min(read, key=lambda how: read[how].null_count)
    if read[how].null_count > 0.1 * len(texts):
        return []
    also = (h for h, found in read.items() if found.null_count == read[how].null_count and found != read[how])
    return [how, *also][:2]


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Categories in their order: numbers by their size, then other texts."""
    plain = re.compile(PLAIN)
    return tuple(sorted(texts, key=lambda t: (0, float(t), t) if plain.match(t) else (1, 0.0, t)))


def formats_of(texts: pa.Array, *, short: bool = False) -> list[str]:
    """The formats that read all of these different ``texts``, at most two; ``short``: years of two digits."""
    some = texts.to_pylist()
    shortened = (day.replace("%Y", "%y") if short else day for day in _DAYS)
    formats = (f"{day}{time}" for day in shortened for time in _TIMES)
    return [how for how in formats if all(days_of(text, how) == days_of(text, how) for text in some)][:2]


class Conversion:
    """The numbers of the column ``name``, chunk by chunk, by its ``kind``; None: numbers as they are.

    :meth:`finish` refuses cells that are not of the kind, counted in all chunks. ``otherwise``, in the words
    of another command: what cells are that are no numbers, their remedy, and that of a rounded number.
    """

    def __init__(self, name: str, kind: str | None, otherwise: tuple[str, str, str] | None = None) -> None:
        self._name = name
        self._kind, _, how = (kind or "").partition(":")
        self._how = how or _DEFAULTS.get(self._kind, "")
        self._otherwise = otherwise or (
            "no number",
            f": set encode.{name} to 'ordinal', 'one_hot' or what `vflens check` proposes, or name the "
            "columns to read without it",
            "",
        )
        self._unit: str | None = None  # that of the first number
        self._wrong: dict[tuple[str, str], tuple[int, int]] = {}  # words before and behind → first row, count

    def numbers(self, cells: pa.Array, first: int) -> Array:
        """Float64 (n,), NaN where missing or wrong; the first cell stands in data row ``first``, from 0.

        Raises:
            DataError: the whole column is not of the kind, or float64 rounds an integer.
        """
        times = kind_of_times(cells.type)
        if times and times != self._kind:
            raise DataError(f"column {self._name!r} holds {cells.type}: encode it as {times!r}")
        if times:
            return days(cells)
        if self._kind == "date":
            return self._dates(cells, first)
        if self._kind == "number" and is_text(cells.type):
            cells = self._bare(cells, first)
        return self._plain(cells, first)

    @property
    def fault(self) -> str:
        """Which cells were wrong so far, in words; "" of none."""
        return next((f"{before} in {in_rows(*rows)}" for (before, _), rows in self._wrong.items()), "")

    def finish(self) -> None:
        """Refuse the wrong cells of all chunks.

        Raises:
            DataError: names the column, the first row, how many more, and the remedy.
        """
        for _, after in self._wrong:
            raise DataError(f"column {self._name!r} holds {self.fault}{after}")

    def _plain(self, cells: pa.Array, first: int) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            numbers = as_floats(cells)
        except pa.ArrowException as error:
            if not is_text(cells.type):
                raise DataError(
                    f"column {self._name!r} holds {cells.type}: store one number or text in each cell, or "
                    "leave the column out"
                ) from error
            fit = pc.match_substring_regex(cells, f"{PLAIN}|{_INFINITE}")
            self._note(in_numpy(fit) == 0, first, *self._otherwise[:2])
            cells = pc.if_else(fit, cells, None)
            numbers = as_floats(cells)
        if beyond_exact(numbers):
            refuse_rounded(self._name, cells, first, self._otherwise[2])
        return numbers

    def _bare(self, cells: pa.Array, first: int) -> pa.Array:
        """Texts such as "-1234.5" for those with marks and units."""
        import pyarrow.compute as pc

        units, bare = split_numbers(cells, self._how)
        wrong = in_numpy(pc.is_valid(bare)) < in_numpy(pc.is_valid(cells))
        self._refuse(wrong, first, f"no number as {self._how}", "correct it, or choose other marks")
        present = pc.drop_null(units)
        if len(present):  # 12 % and 12, or € 5 and $ 5, are no numbers of one column
            self._unit = present[0].as_py() if self._unit is None else self._unit
            other = in_numpy(pc.not_equal(units, self._unit)) == 1
            self._refuse(other, first, f"another unit than {self._unit!r}", "give all cells one unit")
        return bare

    def _dates(self, cells: pa.Array, first: int) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not is_text(cells.type):
            if not pa.types.is_null(cells.type):
                raise DataError(f"column {self._name!r} holds {cells.type}, no date: leave out its encode")
            return as_floats(cells)
        found = cells.dictionary_encode()
        known = [days_of(text, self._how) for text in found.dictionary.to_pylist()]
        values: Array = np.array([*known, np.nan])[np.nan_to_num(in_numpy(found.indices), nan=-1).astype(int)]
        wrong = np.isnan(values) & (in_numpy(pc.is_valid(cells)) == 1)
        self._refuse(wrong, first, f"no date as {self._how}", "correct it, or give its format")
        return values

    def _refuse(self, wrong: Array, first: int, what: str, remedy: str) -> None:
        self._note(wrong, first, what, f": {remedy} (encode.{self._name})")

    def _note(self, wrong: Array, first: int, before: str, after: str) -> None:
        if wrong.any():
            row, count = self._wrong.get((before, after), (first + 1 + int(np.argmax(wrong)), 0))
            self._wrong[before, after] = row, count + int(wrong.sum())


def days_of(text: str, how: str) -> float:
    """Days from 1970 to the date ``text`` of the format ``how``; NaN if it is none."""
    try:
        date = datetime.strptime(text.strip(), how)
    except ValueError:
        return float("nan")
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)


def _is_format(how: str, century: int = 2000) -> bool:
    """Whether ``how`` is a format of ``strptime`` that tells years of the ``century`` apart."""
    tried = _TRIED.replace(year=century + 1)
    try:
        return datetime.strptime(tried.strftime(how), how).year == tried.year
    except (ValueError, re.error):
        return False
