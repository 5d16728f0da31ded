"""Numbers in text: their marks, units and limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

#: A number in text as every reader takes it.
PLAIN = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
#: How 1234.5 is written: the marks of thousands and of decimals.
MARKS = {
    "1,234.5": (",", "."),
    "1.234,5": (".", ","),
    "1 234,5": (" ", ","),
    "1 234.5": (" ", "."),
    "1'234.5": ("'", "."),
}
_SPACES = r" \x{a0}\x{2007}\x{2009}\x{202f}"  # with narrow ones, and those that do not break a line
_BLANK = rf"[\s{_SPACES}]"
#: The marks of thousands in a cell, each with its twins.
_ALIKE = {" ": f"[{_SPACES}]", "'": "['’`´]"}
_SIGN = "[+−–-]?"
#: Codes of money (ISO 4217) that tables have; any three letters would make 10 of the code ICD10.
_MONEY = (
    "AED|ARS|AUD|BDT|BGN|BHD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|DZD|EGP|ETB|EUR|GBP|GEL|"
    "GHS|HKD|HUF|IDR|ILS|INR|IQD|IRR|ISK|JOD|JPY|KES|KRW|KWD|KZT|LBP|LKR|MAD|MXN|MYR|"
    "NGN|NOK|NZD|OMR|PEN|PHP|PKR|PLN|QAR|RON|RSD|RUB|SAR|SEK|SGD|THB|TND|TRY|TWD|TZS|"
    "UAH|UGX|USD|UYU|UZS|VND|XAF|XOF|ZAR|ZMW"
)
_BEFORE = rf"\p{{Lu}}{{0,2}}\p{{Sc}}|{_MONEY}|Rs\.?|Fr\."
#: A unit: a word behind the number, such as mg/dl, °C, km/h, m2 or 10^9/l.
_AFTER = r"\p{Sc}|[%‰°\p{L}][%°\p{L}./·*²³-]*(?:\^-?\d|[23])?|[x×]?10[\^*]\d+/\pL+"
_LIMIT = r"[<>≤≥]=?|"
#: What is written for thousands and more: k and M touch their number, a space makes them units.
SCALE = rf"[kM]\b|{_BLANK}*(?:Tsd|Mio|Mrd|bn)\b\.?"
_POWERS = {"k": "e3", "Tsd": "e3", "M": "e6", "Mio": "e6", "Mrd": "e9", "bn": "e9"}
_NEARLY = 0.9  # of the different texts


def split_numbers(cells: pa.Array, how: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The limits and the units of texts, and texts such as "-1234.5"; null of those that are no number.

    A minus stands in front, behind, or as brackets around the number.
    """
    import pyarrow.compute as pc

    found = pc.extract_regex(cells, _number_pattern(how))
    limit, opened, before, minus, whole, part, scale, behind, closed, after = (
        pc.struct_field(found, [j]) for j in range(10)
    )
    signs = pc.binary_join_element_wise(*(_signed(sign) for sign in (opened, minus, behind)), "")
    brackets = pc.binary_join_element_wise(opened, minus, closed, "")
    paired = pc.equal(pc.match_substring(brackets, "("), pc.equal(closed, ")"))
    grouped, raised = pc.match_substring_regex(whole, r"\D"), pc.match_substring_regex(part, "[eE]")
    fits = pc.and_not(pc.less_equal(pc.binary_length(signs), 1), pc.and_(grouped, raised))
    fits = pc.and_(paired, fits)
    bare = pc.binary_join_element_wise(
        signs,
        pc.replace_substring_regex(whole, r"\D", ""),
        pc.replace_substring_regex(pc.replace_substring(part, ",", "."), "[.][—–-]+$", ""),
        _power(scale),
        "",
    )
    return limit, pc.binary_join_element_wise(before, after, ""), pc.if_else(fits, bare, None)


def _signed(marks: pa.Array) -> pa.Array:
    """ "-" for each way to write it, "" for a plus."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(pc.replace_substring_regex(marks, "[(−–]", "-"), r"\+", "")


def _power(scale: pa.Array) -> pa.Array:
    """The power of ten that words such as k and Mio. stand for."""
    import pyarrow.compute as pc

    power = pc.replace_substring_regex(scale, r"[^\pL]", "")
    for word, exponent in _POWERS.items():
        power = pc.if_else(pc.equal(power, word), exponent, power)
    return power


def _number_pattern(how: str) -> str:
    """A regular expression of numbers, with a limit and a unit before or behind."""
    mark, decimal = (_ALIKE.get(mark, re.escape(mark)) for mark in MARKS[how])
    groups = rf"(?:{mark}\d{{3}})+" + (r"|\d{1,2}(?:,\d\d)+,\d{3}" if mark == "," else "")  # Indian
    return (
        rf"^{_BLANK}*(?P<limit>{_LIMIT}){_BLANK}*(?P<opened>\(|{_SIGN}){_BLANK}*(?P<before>{_BEFORE}|){_BLANK}*"
        rf"(?P<minus>\(|{_SIGN}){_BLANK}*(?P<whole>\d{{1,3}}{groups}|\d+)"
        rf"(?P<part>(?:{decimal}(?:\d+|[—–-]{{1,2}}))?(?:[eE][+-]?\d+)?)(?P<scale>(?:{SCALE})?){_BLANK}*(?P<behind>[−–-]?){_BLANK}*(?P<closed>\)?)"
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


def stands_for(cells: Sequence[str], measured: bool) -> str:
    """A regular expression of ``cells``, a number in all its forms (-999,00), and ``measured`` by a unit."""
    forms = "|".join(re.escape(cell).replace(r"\.", "[.,]") for cell in cells)
    before, after = (r"[^\d+<>≤≥−-]*", r"(?:\s*[^\d\s.,+−-]\S*)?") if measured else ("", "")
    return rf"^\s*{before}(?:{forms})(?:\.0*|,0{{0,2}})?{after}\s*$"
