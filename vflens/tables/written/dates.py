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
    *("%m-%d-%Y", "%b %d, %Y", "%Y-%m", "%m/%Y", "%b %Y", "%d. %b %Y", "%d.%b.%Y", "%Y%m%d"),
    *("%Y.%m.%d", "%d%b%Y", "%G-W%V-%u"),
)
#: How months begin in nine languages: those of Western Europe, Swedish and Polish.
_MONTHS = {
    "Jan": "jan|jän|gen|ene|sty", "Feb": "feb|fév|fev|lut", "Mar": "mar|mär|mrz|maa|mrt",
    "Apr": "apr|avr|abr|kwi", "May": "may|mai|mei|mag|maj", "Jun": "jun|juin|giu|cze",
    "Jul": "jul|juil|lug|lip", "Aug": "aug|aoû|aou|ago|sie", "Sep": "sep|set|wrz",
    "Oct": "oct|okt|ott|out|paź", "Nov": "nov|lis", "Dec": "dec|dez|déc|dic|des|gru",
}  # fmt: skip
#: Weekdays in the same languages: another word before a date, such as "after", says more than the date.
_WEEKDAY = (
    "(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?|"
    "(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|mo|die?|mit?|don?|fre?|sam?|son?|"
    "(?:maan|dins|woens|donder|vrij|zater|zon)dag|maa?|din|woe?|vri?|zat?|zon?|"
    "(?:lun|mar|mercre|jeu|vendre|same)di|dimanche|lun|mar|mer|jeu|ven|dim|"
    "lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|mi[eé]|jue|vie|s[aá]b|dom|"
    "(?:lune|marte|mercole|giove|vener)d[iì]|sabato|domenica|gio|"
    "(?:segunda|terça|quarta|quinta|sexta)(?:-feira)?|seg|ter|qua|qui|sex|(?:mån|tis|ons|tors?|lör|sön)(?:dag)?|"
    "fredag|pon(?:iedziałek)?|wto?|wtorek|śro?|środa|czw(?:artek)?|pią(?:tek)?|pt|sob(?:ota)?|nd|nie(?:dz(?:iela)?)?"
)
#: What stands around dates, and what is read in its place: weekdays, "de", hours as words, zones behind a
#: space, the first day of a week without one.
_AROUND = (
    (rf"(?i)^\s*(?:{_WEEKDAY})\.?,?\s+(\d{{1,2}}\.?[\s./-]+(?:\d{{1,2}}[./-]|\pL))", r"\1"),
    (r"(?i)(\d|\pL)\s+del?\s+", r"\1 "),
    (r"(\d\.)\s*(\d{1,2}\.)\s*(\d)", r"\1\2\3"),
    (r"(\d)(?:\.|\s*Uhr)\s*$", r"\1"),
    (r"(\d\d),\s+(\d{1,2}:)", r"\1 \2"),
    (r"(\d{4}):(\d\d:)", r"\1 \2"),
    (r"(:\d\d)\s+([+-]\d\d:?\d\d)\s*$", r"\1\2"),
    (r"(:\d\d)\s*(?:UTC|GMT)\s*$", r"\1Z"),
    (r"(-W\d\d)\s*$", r"\1-1"),
)
#: The first and last days that programs can store, often for none.
NEVER = (
    r"^\s*((9999|2999)-12-31|31[./]12[./](9999|2999)|12/31/(9999|2999)|0000-00-00|00[./]00[./]0000|"
    r"(0001|1753|1900)-01-01|01[./]01[./](0001|1753|1900))"
)
_OF_MONTHS = "|".join(f"(?P<{name}>{starts})" for name, starts in _MONTHS.items())
_MONTH = re.compile(rf"\b(?:{_OF_MONTHS})[^\W\d_]*\b(?:\.(?=\s|$))?", re.I)
_NTH = re.compile(r"(?<=\d)(?:st|nd|rd|th|er)\b", re.I)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %H:%M:%S%z", " %I:%M %p", " %I:%M:%S %p")
_TIMES = (*_CLOCKS, "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f", "T%H:%M:%S%z", "T%H:%M:%S.%f%z", "T%H%M%S")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Fields of a date that are read all at once, as ``strptime`` takes them; it reads the others.
_FIELDS = {"%Y": r"(?P<Y>\d{4})", "%f": r"(?P<f>\d{1,6})"} | {
    f"%{name}": rf"(?P<{name}>\d{{{1 + (name == 'y')},2}})" for name in "ymdHMS"
}
_RANGES = {"m": (1, 12), "d": (1, 31), "H": (0, 23), "M": (0, 59), "S": (0, 59)}
_PIVOT = 69  # two digits below it are of this century, as strptime takes them
_DAY = 86_400_000_000  # microseconds
_MICROS = {"H": 3_600_000_000, "M": 60_000_000, "S": 1_000_000, "f": 1}
_HALF = r"\s*(?P<half>[ap]\.?m\.?|uhr|h|)"
_NUMBER = r"\d+(?:[.,]\d+)?"
#: How times and durations are written; each has some of the fields of :data:`_PARTS`.
_WRITTEN = tuple(
    rf"(?i)^\s*(?P<minus>[-−]?){pattern}\s*$"
    for pattern in (
        r"(?:(?P<days>\d+) days?,? \+?)?(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)"
        rf"(?::(?P<seconds>[0-5]\d(?:[.,]\d+)?))?{_HALF}",
        r"(?P<hours>\d{1,2})(?:\.(?P<minutes>[0-5]\d))?\s*(?P<half>[ap]\.?m\.?|uhr)",
        r"(?P<hours>\d{1,2})h(?P<minutes>[0-5]\d)",
        rf"p(?:(?P<weeks>{_NUMBER})w)?(?:(?P<days>{_NUMBER})d)?"
        rf"(?:t(?:(?P<hours>{_NUMBER})h)?(?:(?P<minutes>{_NUMBER})m)?(?:(?P<seconds>{_NUMBER})s)?)?",
        rf"(?:(?P<weeks>{_NUMBER})\s*(?:w|wks?|weeks?|wochen?)[\s,]*)?"
        rf"(?:(?P<days>{_NUMBER})\s*(?:d|days?|t|tage?n?|j|jours?)[\s,]*)?"
        rf"(?:(?P<hours>{_NUMBER})\s*(?:h|hrs?|hours?|st|std|stunden?|heures?)\.?[\s,]*)?"
        rf"(?:(?P<minutes>{_NUMBER})\s*(?:m|mins?|minuten?|minutes?)\.?[\s,]*)?"
        rf"(?:(?P<seconds>{_NUMBER})\s*(?:s|secs?|seconds?|sek|sekunden?|secondes?)\.?)?",
    )
)
_PARTS = {"weeks": 1 / 7, "days": 1.0, "hours": 24.0, "minutes": 1440.0, "seconds": 86400.0}  # of a day


def formats_of(texts: pa.Array, *, short: bool = False) -> list[str]:
    """The formats that read nearly all of these different ``texts``, at most two that read as many, the
    first best; ``short``: years of two digits.
    """
    shortened = (day.replace("%Y", "%y") for day in _DAYS if "%d" in day) if short else _DAYS
    formats, texts = [f"{day}{time}" for day in shortened for time in _TIMES], _bare(texts)
    for most in (*_FIRST, len(texts)):
        tried = texts.take(np.arange(0, len(texts), -(-len(texts) // most)))
        read = {how: np.isfinite(_dates(tried, how, 0)).sum() for how in formats}
        formats = [how for how in formats if read[how] > _NEARLY * len(tried)]
    most = max((read[how] for how in formats), default=0)
    return [how for how in formats if read[how] == most][:2]


def stand_for_none(texts: pa.Array, days: Array) -> Array:
    """Which ``texts`` are :data:`NEVER`, bool (n,), their ``days`` not between those of others."""
    import pyarrow.compute as pc

    never = in_numpy(pc.match_substring_regex(texts, NEVER)) == 1
    low, high = (end(days[~never], initial=np.nan) for end in (np.fmin.reduce, np.fmax.reduce))
    return np.asarray(never & ~((low < days) & (days < high)))


def dates_of(cells: pa.Array, how: str, century: int = 0) -> Array:
    """Days (n,) from 1970 to the dates of the format ``how``, weekdays and such around them; NaN of what is
    none. Two digits of a year are of the hundred years from ``century`` on.
    """
    values = _dates(cells, how, century)
    if (np.isnan(values) & (in_numpy(cells.is_valid()) == 1)).any():
        values = np.where(np.isnan(values), _dates(_bare(cells), how, century), values)
    return values


def _bare(cells: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    for written, read in _AROUND:
        cells = pc.replace_substring_regex(cells, written, read)
    return cells


def _dates(cells: pa.Array, how: str, century: int) -> Array:
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


def _in_english(text: str) -> str:
    """``text`` with English months of three letters, and days without "st" and "th"."""
    months = _MONTH.sub(lambda month: str(month.lastgroup), text.strip())
    return _NTH.sub("", months)


def _days_of(text: str, how: str, century: int) -> float:
    try:
        date = datetime.strptime(_in_english(text), how.replace("%B", "%b"))
        if century:
            date = date.replace(year=century + (date.year - century) % 100)
    except ValueError:
        return float("nan")
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)


def times_of(cells: pa.Array) -> tuple[Array, Array]:
    """The days (n,) that times and durations take, NaN of others, and which cells these are, bool (n,)."""
    import pyarrow.compute as pc

    values: Array = np.full(len(cells), np.nan)
    for pattern in _WRITTEN:
        if not np.isnan(values).any():
            break
        values = np.where(np.isnan(values), _times(cells, pattern), values)
    return values, np.isnan(values) & (in_numpy(pc.is_valid(cells)) == 1)


def _times(cells: pa.Array, pattern: str) -> Array:
    """Those in the one way ``pattern``; NaN of cells without any part."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(cells, pattern)
    names = [field.name for field in found.type]
    parts = {}
    for name in _PARTS.keys() & set(names):
        text = pc.replace_substring(pc.struct_field(found, name), ",", ".")
        parts[name] = in_numpy(pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64()))
    if "half" in names:
        half = pc.utf8_lower(pc.struct_field(found, "half"))
        of_day, after = (in_numpy(pc.starts_with(half, start)) == 1 for start in ("a", "p"))
        hours, twelve = parts["hours"], of_day | after
        parts["hours"] = np.where(twelve, hours % 12 + 12 * after, hours)
        parts["hours"][twelve & ~((hours >= 1) & (hours <= 12))] = np.inf
    whole = np.sum(
        [np.nan_to_num(part, posinf=np.inf) / _PARTS[name] for name, part in parts.items()], axis=0
    )
    minus = in_numpy(pc.binary_length(pc.struct_field(found, "minus"))) > 0
    none = np.all([np.isnan(part) for part in parts.values()], axis=0)
    whole[none | np.isinf(whole)] = np.nan
    values: Array = np.where(minus, -whole, whole)
    return values
