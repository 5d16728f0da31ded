"""How cells of a column become numbers: the kinds that ``encode.COLUMN`` of a party's file takes.

===========================  =========================================================================
kind                    the column becomes
===========================  =========================================================================
``ordinal``             the codes 0, 1, … of its categories
``one_hot``             a column of 0 and 1 for each category
``one_hot:missing``     the same, with the category *missing* for empty cells
``number``              the numbers of texts such as ``€ 1,234.50`` or ``12 %``, without their unit
                        or the days that a parquet file's durations and times of day take
``number:1.234,5``      the same with other marks; the kind shows how 1234.5 is written
``number:below=half``   the same; ``<0.5`` or ``≤0.5``, a limit, is half of it (``limit``: itself, ``empty``:
                        missing), above a limit it is the limit; behind marks too
``date``                days since 1970 of texts such as ``2024-02-29``, or of a parquet file's dates
``date:%d/%m/%Y``       the same with another format (that of Python's ``datetime.strptime``)
``date:%d.%m.%y:from=1930``  years of two digits, of the hundred years from this one on
``time``                days that times and durations take, such as ``14:30``, ``2:30 PM``, ``2h 5m``,
                        ``PT2H5M`` or ``2 days 01:00:00``
===========================  =========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import DataError
from vflens.names import did_you_mean
from vflens.storage.arrow import in_numpy
from vflens.tables.exact_numbers import as_floats, as_text, beyond_exact, is_text, refuse_rounded
from vflens.tables.places import in_rows
from vflens.tables.written.dates import dates_of, times_of
from vflens.tables.written.kinds import days, kind_of_times
from vflens.tables.written.numbers import MARKS, PLAIN, split_numbers
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: A text column with more different texts is no column of categories.
MOST_CATEGORIES = 1000
_DEFAULTS = {"number": "1,234.5", "date": "%Y-%m-%d"}
MISSING = "missing"  # the category of empty cells
_CATEGORIES = ("ordinal", "one_hot", f"one_hot:{MISSING}")
_TRIED = datetime(2001, 2, 3, tzinfo=UTC)
_FROM = ":from="
#: What a number below a limit becomes.
BELOW, _BELOW = "below=", ("half", "limit", "empty")
_INFINITE = r"(?i)^\s*[+-]?(inf|infinity|nan)\s*$"


def checked_kind(kind: str) -> str:
    """``kind``, if it is one of the table above.

    Raises:
        ValueError: it is none.
    """
    name, _, how = kind.partition(":")
    if kind in (*_CATEGORIES, "number", "date", "time") or (name == "number" and _is_number(how)):
        return kind
    how, _, century = how.partition(_FROM)
    if name == "date" and _is_format(how):
        if _is_format(how, 1900) == bool(century) or (century and not re.fullmatch("[0-9]{4}", century)):
            raise ValueError(
                f"{kind!r} has years of two digits, of which century? Write them with four (%Y), or name the "
                f"first year behind the format, such as date:%d.%m.%y{_FROM}1930"
            )
        return kind
    near = did_you_mean(
        kind, (*_CATEGORIES, "number", "date", "time", *(f"number:{marks}" for marks in MARKS))
    )
    raise ValueError(
        f"give {', '.join(_CATEGORIES)}, number, date, time, number: and how 1234.5 is written "
        f"({', '.join(MARKS)}), number:below=half, or date: and a format such as %d/%m/%Y, not {kind!r}{near}"
    )


def _is_number(how: str) -> bool:
    marks, _, below = how.rpartition(BELOW) if BELOW in how else (how, "", "")
    return bool(how) and marks.removesuffix(":") in ("", *MARKS) and (below in _BELOW or BELOW not in how)


def column_and_kind(flag: str) -> tuple[str, str]:
    """The column and kind of a flag COLUMN=KIND, or KIND with the column ""; "one-hot" is one_hot."""
    column, _, kind = flag.rpartition("=")
    return column, "one_hot" if kind == "one-hot" else kind


def is_categorical(kind: str) -> bool:
    """Whether ``kind`` makes codes of categories."""
    return kind in _CATEGORIES


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Categories in their order: numbers by their size, with a decimal comma too, then other texts."""
    points = {text: text.replace(",", ".") for text in texts}
    plain = {text: float(point) for text, point in points.items() if re.match(PLAIN, point)}
    return tuple(sorted(points, key=lambda t: (0, plain[t], t) if t in plain else (1, 0.0, t)))


class Conversion:
    """The numbers of the column ``name``, chunk by chunk, by its ``kind``; None: numbers as they are.

    :meth:`finish` refuses cells that are not of the kind, counted in all chunks. ``otherwise``, in the words
    of another command: what cells are that are no numbers, their remedy, and that of a rounded number.
    """

    def __init__(self, name: str, kind: str | None, otherwise: tuple[str, str, str] | None = None) -> None:
        self._name = name
        self._kind, _, how = (kind or "").partition(":")
        how, _, self._below = how.partition(BELOW) if self._kind == "number" else (how, "", "")
        how, _, century = how.partition(_FROM)
        self._how = how.removesuffix(":") or _DEFAULTS.get(self._kind, "")
        self._century = int(century or 0)
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
        if self._kind == "time":
            values, wrong = times_of(as_text(self._name, cells))
            self._refuse(wrong, first, "no time", "correct it, such as 14:30, 2:30 PM, 2h 5m or PT2H5M")
            return values
        if self._kind == "number" and is_text(cells.type):
            limits, cells = self._bare(cells, first)
            return self._beside_limits(limits, self._plain(cells, first))
        return self._plain(cells, first)

    def _beside_limits(self, limits: pa.Array, values: Array) -> Array:
        """``values`` (n,), those below a limit as the kind says; above a limit the limit stands."""
        import pyarrow.compute as pc

        if self._below == "half":
            values = np.where(in_numpy(pc.match_substring_regex(limits, "^[<≤]")) == 1, values / 2, values)
        elif self._below == "empty":
            values = np.where(in_numpy(pc.not_equal(limits, "")) == 1, np.nan, values)
        return values

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

    def _bare(self, cells: pa.Array, first: int) -> tuple[pa.Array, pa.Array]:
        """The limits, and texts such as "-1234.5" for those with marks and units."""
        import pyarrow.compute as pc

        limits, units, bare = split_numbers(cells, self._how)
        wrong = in_numpy(pc.is_valid(bare)) < in_numpy(pc.is_valid(cells))
        self._refuse(wrong, first, f"no number as {self._how}", "correct it, or choose other marks")
        present = pc.drop_null(units)
        if len(present):  # 12 % and 12, or € 5 and $ 5, are no numbers of one column
            self._unit = present[0].as_py() if self._unit is None else self._unit
            other = in_numpy(pc.not_equal(units, self._unit)) == 1
            self._refuse(other, first, f"another unit than {self._unit!r}", "give all cells one unit")
        if not self._below:
            limited = in_numpy(pc.not_equal(limits, "")) == 1
            self._refuse(limited, first, "a limit", "set it with :below=half, :below=limit or :below=empty")
        return limits, bare

    def _dates(self, cells: pa.Array, first: int) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_integer(cells.type):  # 20240229
            cells = as_text(self._name, cells)
        if not is_text(cells.type):
            if not pa.types.is_null(cells.type):
                raise DataError(f"column {self._name!r} holds {cells.type}, no date: leave out its encode")
            return as_floats(cells)
        values = dates_of(cells, self._how, self._century)
        wrong = np.isnan(values) & (in_numpy(pc.is_valid(cells)) == 1)
        self._refuse(wrong, first, f"no date as {self._how}", "correct it, or give its format")
        return values

    def _refuse(self, wrong: Array, first: int, what: str, remedy: str) -> None:
        self._note(wrong, first, what, f": {remedy} (encode.{self._name})")

    def _note(self, wrong: Array, first: int, before: str, after: str) -> None:
        if wrong.any():
            row, count = self._wrong.get((before, after), (first + 1 + int(np.argmax(wrong)), 0))
            self._wrong[before, after] = row, count + int(wrong.sum())


def _is_format(how: str, century: int = 2000) -> bool:
    """Whether ``how`` is a format of ``strptime`` that tells years of the ``century`` apart."""
    tried = _TRIED.replace(year=century + 1)
    try:
        return datetime.strptime(tried.strftime(how), how).year == tried.year
    except (ValueError, re.error):
        return False
