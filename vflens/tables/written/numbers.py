"""Numbers in text: their marks, units and limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
