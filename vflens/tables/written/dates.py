"""Dates in text by their format, times and durations; all cells at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from vflens.storage.arrow import in_numpy
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

_NEARLY = 0.9  # of the different texts
_FIRST = (10, 100)  # texts that a format is tried on before all
_DAYS = (
    *("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y"),
    *("%m-%d-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m", "%m/%Y", "%b %Y", "%B %Y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %H:%M:%S%z", " %I:%M %p", " %I:%M:%S %p")
_TIMES = (*_CLOCKS, "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f", "T%H:%M:%S%z", "T%H:%M:%S.%f%z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Fields of a date that are read all at once, as ``strptime`` takes them; it reads the others.
_FIELDS = {"%Y": r"(?P<Y>\d{4})", "%f": r"(?P<f>\d{1,6})"} | {
    f"%{name}": rf"(?P<{name}>\d{{{1 + (name == 'y')},2}})" for name in "ymdHMS"
}
_RANGES = {"m": (1, 12), "d": (1, 31), "H": (0, 23), "M": (0, 59), "S": (0, 59)}
_PIVOT = 69  # two digits below it are of this century, as strptime takes them
_DAY = 86_400_000_000  # microseconds
_MICROS = {"H": 3_600_000_000, "M": 60_000_000, "S": 1_000_000, "f": 1}
_TIME = (
    r"^\s*(?P<minus>-?)(?:(?P<days>\d+) days?,? \+?)?(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d(?:[.,]\d+)?))?\s*$"
)
_PARTS = (1.0, 24.0, 1440.0, 86400.0)  # of a day


def formats_of(texts: pa.Array, *, short: bool = False) -> list[str]:
    """The formats that read nearly all of these different ``texts``, at most two that read as many, the
    first best; ``short``: years of two digits.
    """
    shortened = (day.replace("%Y", "%y") for day in _DAYS if "%d" in day) if short else _DAYS
    formats = [f"{day}{time}" for day in shortened for time in _TIMES]
    for most in (*_FIRST, len(texts)):
        tried = texts.take(np.arange(0, len(texts), -(-len(texts) // most)))
        read = {how: np.isfinite(dates_of(tried, how)).sum() for how in formats}
        formats = [how for how in formats if read[how] > _NEARLY * len(tried)]
    most = max((read[how] for how in formats), default=0)
    return [how for how in formats if read[how] == most][:2]


def dates_of(cells: pa.Array, how: str, century: int = 0) -> Array:
    """Days (n,) from 1970 to the dates of the format ``how``; NaN of what is none. Two digits of a year are
    of the hundred years from ``century`` on.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if set(re.findall("%.", how)) - _FIELDS.keys() or len(set(_names(how))) < len(_names(how)):
        found = cells.dictionary_encode()
        known = [_days_of(text, how, century) for text in found.dictionary.to_pylist()]
        of_all: Array = np.array([*known, np.nan])[np.nan_to_num(in_numpy(found.indices), nan=-1).astype(int)]
        return of_all
    found = pc.extract_regex(cells, _date_pattern(how))
    parts = {"Y": np.ones(len(cells)), "m": np.ones(len(cells)), "d": np.ones(len(cells))}
    for name in _names(how):
        text = (
            pc.utf8_rpad(pc.struct_field(found, name), 6, "0")
            if name == "f"
            else pc.struct_field(found, name)
        )
        parts[name] = in_numpy(text.cast(pa.float64()))
    if "y" in parts:
        parts["Y"] = parts["y"] + np.where(parts["y"] < _PIVOT, 2000, 1900)
    if century:
        parts["Y"] = century + (parts["Y"] - century) % 100
    fine = np.isfinite(sum(parts.values())) & (parts["Y"] > 0)
    for name, (least, most) in _RANGES.items():
        fine &= (least <= parts.get(name, least)) & (parts.get(name, least) <= most)
    whole = {name: np.where(fine, part, 1).astype(np.int64) for name, part in parts.items()}
    month = (whole["Y"] - 1970).astype("M8[Y]").astype("M8[M]") + whole["m"] - 1
    day = month.astype("M8[D]") + whole["d"] - 1
    fine &= day.astype("M8[M]") == month  # no 30 February
    micros = np.zeros(len(cells), np.int64)
    for name in _MICROS.keys() & whole.keys():
        micros += whole[name] * _MICROS[name]
    values: Array = np.where(fine, (day.astype(np.int64) * _DAY + micros) / _DAY, np.nan)
    return values


def _names(how: str) -> list[str]:
    """The fields of a format, in their order."""
    return re.findall("%(.)", how)


def _date_pattern(how: str) -> str:
    parts = re.split(r"(%.|\s+)", how)
    regex = "".join(_FIELDS.get(part) or (r"\s+" if part.isspace() else re.escape(part)) for part in parts)
    return rf"^\s*{regex}\s*$"


def _days_of(text: str, how: str, century: int) -> float:
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
