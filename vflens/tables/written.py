"""How people write numbers, times and dates: marks, units, limits, formats."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from vflens.storage.arrow import in_numpy
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: A number in text as every reader takes it.
PLAIN = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
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
_BEFORE = rf"\p{{Sc}}|{_MONEY}"
#: A unit: a word behind the number, such as mg/dl, °C, km/h or m2.
_AFTER = r"\p{Sc}|[%‰°\p{L}][%°\p{L}./·*²³-]*(?:\^-?\d|[23])?"
_LIMIT = r"[<>≤≥]=?|"
_NEARLY = 0.9  # of the different texts
_FIRST = 100  # texts that a format is tried on first
_DAYS = (
    *("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y"),
    *("%m-%d-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m", "%m/%Y", "%b %Y", "%B %Y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %H:%M:%S%z", " %I:%M %p", " %I:%M:%S %p")
_TIMES = (*_CLOCKS, "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f", "T%H:%M:%S%z", "T%H:%M:%S.%f%z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = (
    r"^\s*(?P<minus>-?)(?:(?P<days>\d+) days?,? \+?)?(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d(?:[.,]\d+)?))?\s*$"
)
_PARTS = (1.0, 24.0, 1440.0, 86400.0)  # of a day


def split_numbers(cells: pa.Array, how: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The limits and the units of texts, and texts such as "-1234.5"; null of those that are no number."""
    import pyarrow.compute as pc

    found = pc.extract_regex(cells, _number_pattern(how))
    limit, sign, before, minus, whole, part, after = (pc.struct_field(found, [j]) for j in range(7))
    whole = pc.replace_substring_regex(whole, r"\D", "")
    part = pc.replace_substring(part, ",", ".")
    units = pc.binary_join_element_wise(before, after, "")
    return limit, units, pc.binary_join_element_wise(sign, minus, whole, part, "")


def _number_pattern(how: str) -> str:
    """A regular expression of numbers, with a limit and a unit before or behind."""
    thousands, decimal = (re.escape(mark) for mark in MARKS[how])
    mark = r"[ \x{a0}\x{202f}]" if thousands.strip("\\") == " " else thousands
    return (
        rf"^{_BLANK}*(?P<limit>{_LIMIT}){_BLANK}*(?P<sign>[+-]?)(?P<before>{_BEFORE}|){_BLANK}*(?P<minus>[+-]?)"
        rf"(?P<whole>\d{{1,3}}(?:{mark}\d{{3}})+|\d+)(?P<part>(?:{decimal}\d+)?(?:[eE][+-]?\d+)?)"
        rf"{_BLANK}*(?P<after>{_AFTER}|){_BLANK}*$"
    )


def marks_of(texts: pa.Array) -> list[str]:
    """The marks that read nearly all of these different ``texts`` as numbers, at most two; the second ones
    read as many, and others.
    """
    read = {how: split_numbers(texts, how)[2] for how in MARKS}
    how = min(read, key=lambda how: read[how].null_count)
    if read[how].null_count > (1 - _NEARLY) * len(texts):
        return []
    also = (h for h, found in read.items() if found.null_count == read[how].null_count and found != read[how])
    return [how, *also][:2]


def formats_of(texts: pa.Array, *, short: bool = False) -> list[str]:
    """The formats that read nearly all of these different ``texts``, at most two that read as many, the
    first best; ``short``: years of two digits.
    """
    some = texts.to_pylist()
    shortened = (day.replace("%Y", "%y") for day in _DAYS if "%d" in day) if short else _DAYS
    formats = [f"{day}{time}" for day in shortened for time in _TIMES]
    for tried in (some[:: -(-len(some) // _FIRST) or 1], some):
        read = {how: sum(days_of(text, how) == days_of(text, how) for text in tried) for how in formats}
        formats = [how for how in formats if read[how] > _NEARLY * len(tried)]
    most = max((read[how] for how in formats), default=0)
    return [how for how in formats if read[how] == most][:2]


def days_of(text: str, how: str, century: int = 0) -> float:
    """Days from 1970 to the date ``text`` of the format ``how``; NaN if it is none. Two digits of a year are
    of the hundred years from ``century`` on.
    """
    try:
        date = datetime.strptime(text.strip(), how)
        if century:
            date = date.replace(year=century + (date.year - century) % 100)
    except ValueError:
        return float("nan")
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)


def times_of(cells: pa.Array) -> tuple[Array, Array]:
    """The days (n,) that times and durations take, NaN of others, and which cells these are, bool (n,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(cells, _TIME)
    total = np.zeros(len(cells))
    for name, parts in zip(("days", "hours", "minutes", "seconds"), _PARTS, strict=True):
        part = pc.replace_substring(pc.struct_field(found, name), ",", ".")
        total += in_numpy(pc.if_else(pc.equal(part, ""), "0", part).cast(pa.float64())) / parts
    minus = in_numpy(pc.equal(pc.struct_field(found, "minus"), "-")) == 1
    values = np.where(minus, -total, total)
    return values, np.isnan(values) & (in_numpy(pc.is_valid(cells)) == 1)
