"""How cells of a column become numbers: the kinds that ``encode.COLUMN`` of a party's file takes.

======================  ==============================================================================
kind                    the column becomes
======================  ==============================================================================
``ordinal``             the codes 0, 1, … of its categories
``one_hot``             a column of 0 and 1 for each category
``one_hot:missing``     the same, with the category *missing* for empty cells
``number``              the numbers of texts such as ``€ 1,234.50`` or ``12 %``, without their unit
``number:1.234,5``      the same with other marks; the kind shows how 1234.5 is written
``date``                days since 1970 of texts such as ``2024-02-29``, or of a parquet file's dates
``date:%d/%m/%Y``       the same with another format (that of Python's ``datetime.strptime``)
======================  ==============================================================================
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import DataError
from vflens.names import did_you_mean
from vflens.storage.arrow import in_numpy
from vflens.tables.exact_numbers import as_floats, beyond_exact, is_text, refuse_rounded
from vflens.tables.places import data_rows
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
_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%d/%m/%y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M:%S.%f")
_EPOCH, _TRIED = datetime(1970, 1, 1, tzinfo=UTC), datetime(2001, 2, 3, tzinfo=UTC)


def checked_kind(kind: str) -> str:
    """``kind``, if it is one of the table above.

    Raises:
        ValueError: it is none.
    """
    name, _, how = kind.partition(":")
    if kind in (*_CATEGORIES, "number", "date") or (name == "number" and how in MARKS):
        return kind
    if name == "date" and _is_format(how):
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


def formats_of(texts: pa.Array) -> list[str]:
    """The formats that read all of these different ``texts``, at most two."""
    some = texts.to_pylist()
    formats = (f"{day}{time}" for day in _DAYS for time in _TIMES)
    return [how for how in formats if all(days_of(text, how) == days_of(text, how) for text in some)][:2]


class Conversion:
    """The numbers of the column ``name``, chunk by chunk, by its ``kind``; None: numbers as they are."""

    def __init__(self, name: str, kind: str | None) -> None:
        self._name = name
        self._kind, _, how = (kind or "").partition(":")
        self._how = how or _DEFAULTS.get(self._kind, "")
        self._unit: str | None = None  # that of the first number

    def numbers(self, cells: pa.Array, first: int) -> Array:
        """Float64 (n,), NaN where missing; the first cell stands in data row ``first``, counted from 0.

        Raises:
            DataError: a cell is not of the kind; column, row and remedy.
        """
        if self._kind == "date":
            return self._dates(cells, first)
        if self._kind == "number" and is_text(cells.type):
            cells = self._bare(cells, first)
        return self._plain(cells, first)

    def _plain(self, cells: pa.Array, first: int) -> Array:
        import pyarrow as pa

        try:
            numbers = as_floats(cells)
        except pa.ArrowException as error:
            raise DataError(
                f"column {self._name!r} holds no number in data row {first + 1 + _first_text(cells)}: set "
                f"encode.{self._name} to 'ordinal', 'one_hot', 'number' or 'date', or name the columns to "
                "read without it"
            ) from error
        if beyond_exact(numbers):
            refuse_rounded(self._name, cells, first)
        return numbers

    def _bare(self, cells: pa.Array, first: int) -> pa.Array:
        """Texts such as "-1234.5" for those with marks and units."""
        import pyarrow.compute as pc

        units, bare = split_numbers(cells, self._how)
        self._refuse(
            in_numpy(pc.is_valid(bare)) < in_numpy(pc.is_valid(cells)),
            first,
            f"no number as {self._how}",
            "correct it, or choose other marks",
        )
        self._check_unit(units, first)
        return bare

    def _check_unit(self, units: pa.Array, first: int) -> None:
        """Refuse a second unit: 12 % and 12, or € 5 and $ 5, are no numbers of one column."""
        import pyarrow.compute as pc

        present = pc.drop_null(units)
        if not len(present):
            return
        self._unit = present[0].as_py() if self._unit is None else self._unit
        other = in_numpy(pc.not_equal(units, self._unit)) == 1
        self._refuse(other, first, f"another unit than {self._unit!r}", "give all cells one unit")

    def _dates(self, cells: pa.Array, first: int) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not is_text(cells.type):
            if not (pa.types.is_date(cells.type) or pa.types.is_timestamp(cells.type)):
                self._refuse(np.full(len(cells), True), first, "no date", "leave out its encode")
            return in_numpy(pc.cast(cells.cast(pa.timestamp("us")), pa.int64())) / 86_400e6
        found = cells.dictionary_encode()
        days = [days_of(text, self._how) for text in found.dictionary.to_pylist()]
        values: Array = np.array([*days, np.nan])[np.nan_to_num(in_numpy(found.indices), nan=-1).astype(int)]
        wrong = np.isnan(values) & (in_numpy(pc.is_valid(cells)) == 1)
        self._refuse(wrong, first, f"no date as {self._how}", "correct it, or give its format")
        return values

    def _refuse(self, wrong: Array, first: int, what: str, remedy: str) -> None:
        if wrong.any():
            rows = data_rows(first + 1 + np.flatnonzero(wrong))
            raise DataError(f"column {self._name!r} holds {what} in {rows}: {remedy} (encode.{self._name})")


def days_of(text: str, how: str) -> float:
    """Days from 1970 to the date ``text`` of the format ``how``; NaN if it is none."""
    try:
        date = datetime.strptime(text.strip(), how)
    except ValueError:
        return float("nan")
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)


def _is_format(how: str) -> bool:
    """Whether ``how`` is a format of ``strptime`` that tells years apart."""
    try:
        return datetime.strptime(_TRIED.strftime(how), how).year == _TRIED.year
    except (ValueError, re.error):
        return False


def _first_text(cells: pa.Array) -> int:
    """The place of the first of ``cells`` that is no number; one is there."""
    import pyarrow as pa

    def fails(count: int) -> bool:
        try:
            as_floats(cells.slice(0, count))
        except pa.ArrowException:
            return True
        return False

    return bisect_left(range(1, len(cells)), True, key=fails)
