"""Recognisers of columns of numbers: codes for a missing value, identifiers, times, outliers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from vflens.tables.description import PartyFile
from vflens.tables.encodings import MOST_CATEGORIES
from vflens.tables.own_check.flaw import (
    Flaw,
    a_flaw,
    constant,
    id_like,
    key,
    left_out,
    mended_by,
    of,
    quoted,
)
from vflens.tables.own_check.profile import MANY, ColumnProfile
from vflens.tables.places import data_rows
from vflens.tables.reading import WholeColumns
from vflens.types import Array

_TRIED = 10_000  # values, before all are
_LONG = 1e9  # whole numbers from here on that all differ are those of accounts or goods
#: The middle 99 % of the values in less than this share of the range: a few others decide the scale.
_NARROW, _TAIL, _DRAWN = 0.05, 0.005, 1 << 16
#: Numbers that stand for a missing value: -1, nines and such, and the ends of what programs can store.
_NINES = re.compile(r"-1|-?(?:9+(?:\.9+|\.25)?|8+|7+|9+[678])|-2147483648|2147483647|-?32768|32767|65535")
#: So many different values are codes; rows that repeat a placeholder; one digit of few codes tells nothing.
_DIFFERENT, _REPEATS, _SHORT = 10, 3, 9
_CODES = 3  # different ones at an end
#: Seconds since 1970 of the years 2000 to 2037, and how many are in each unit of time.
_FROM, _TO = 946_684_800, 2_145_916_800
#: Days as a spreadsheet counts them, of the years 1990 to 2040; dates as whole numbers.
_SERIALS = (32_874, 51_501)
_DATE, _FIRST_DATE, _LAST_DATE = "date:%Y%m%d", 19_000_101, 21_001_231
_CLOCKS = {0: "", 4: "%H%M", 6: "%H%M%S"}  # behind the day, by their digits
_NEARLY, _FEW = 0.8, 5  # of the cells are dates; other numbers that stand for none
_IN_A_SECOND = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}


def of_numbers(spec: PartyFile, column: ColumnProfile, tries: WholeColumns) -> Iterator[Flaw]:
    """The flaws of the numbers of ``column``; ``tries`` as of texts."""
    if column.rounded:
        cells = of(column.rounded, column.present, "cells")
        sentence = f"{column.name} holds integers beyond 2^53 that float64 rounds in {cells}"
        remedy = f"{left_out(column.name)}, or store it with a decimal point"
        yield a_flaw(
            "huge integers", column.name, sentence, remedy, {"rounded": column.rounded}, refused=True
        )
    if infinite := column.infinite():
        sentence = f"{column.name} is infinite in {of(infinite, column.present, 'cells')}"
        yield a_flaw(
            "infinite", column.name, sentence, "correct these cells", {"infinite": infinite}, refused=True
        )
    values = column.numbers()
    dates = _dates(column, values, tries)
    if column.leading_zeros and not dates:
        yield _zeros(column)
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    if low == high:
        yield constant(column.name, column.missing, column.rows)
    elif dates:
        yield dates
    elif epoch := _epoch(low, high):
        yield a_flaw("epoch", column.name, f"{column.name} could be {epoch}", "it is read as numbers")
    elif _numbers_rows(values):
        yield id_like(column.name, "holds another whole number in each row")
    elif serials := _serials(values, low, high):
        yield a_flaw("epoch", column.name, f"{column.name} could be {serials}", "it is read as numbers")
    elif column.name not in spec.bounds:
        yield from [*_placeholders(column, values)] or _outlier(column, values, low, high)


def _zeros(column: ColumnProfile) -> Flaw:
    cells = of(column.leading_zeros, column.present, "cells")
    what = f"begins with a 0 in {cells}, which a number loses"
    different = len(np.unique(column.numbers()))
    if different > MOST_CATEGORIES:
        sentence = (
            f"{column.name} {what}; {different:,} different are more than {MOST_CATEGORIES:,} categories"
        )
        remedy = f"group them, such as by their first digits, or {left_out(column.name)}"
        return a_flaw("leading zeros", column.name, sentence, remedy, {"cells": column.leading_zeros})
    return mended_by(
        "leading zeros", column.name, what, "one_hot", {"cells": column.leading_zeros}, refused=False
    )


def _outlier(column: ColumnProfile, values: Array, low: float, high: float) -> Iterator[Flaw]:
    """A few values that make the scale of all others: their scaled errors then say nothing."""
    drawn = values[:: -(-len(values) // _DRAWN)]
    first, last = np.quantile(drawn, [_TAIL, 1 - _TAIL], method="nearest").tolist()
    part = (last - first) / (high - low) if np.isfinite(high - low) else 0.0
    if first == last or part >= _NARROW:
        return
    share = float(np.mean((values >= first) & (values <= last)))
    far = high if high - last > first - low else low
    rows = data_rows(np.flatnonzero(column.cells() == far) + 1)
    sentence = (
        f"{100 * share:.4g} % of {column.name} lie in {100 * part:.2g} % of its range; the others decide the "
        f"scale, the farthest in {rows}, and scaled errors say little"
    )
    remedy = "correct such cells, or leave them empty if they stand for a missing value"
    yield a_flaw("outlier", column.name, sentence, remedy, {"share": share, "part": part})


def _numbers_rows(values: Array) -> bool:
    """Whether these are whole numbers, all different, that rise, lie close together, or are very many.

    Few are tried first: most columns repeat some.
    """
    few = values[:_TRIED]
    if len(few) < MANY or (few != np.rint(few)).any() or len(np.unique(few)) < len(few):
        return False
    if len(np.unique(values)) < len(values) or (values != np.rint(values)).any():
        return False
    close = np.ptp(values) < 2 * len(values)
    return bool((np.diff(values) > 0).all() or close or len(values) > _TRIED or values.min() >= _LONG)


def _placeholders(column: ColumnProfile, values: Array) -> Iterator[Flaw]:
    """Numbers apart from all others that stand for a missing value."""
    if not any(_NINES.fullmatch(f"{end:.15g}") for end in (values.min(), values.max())):
        return
    different, counts = np.unique(values, return_counts=True)
    found = _below_zero(different, counts) or _at_an_end(different, counts)
    if not found:
        return
    shown = [f"{different[at]:.15g}" for at in found]
    cells = of(int(counts[found].sum()), column.present, "cells")
    which = "it" if len(found) == 1 else "they"
    sentence = (
        f"{column.name} is {' or '.join(shown)} in {cells}, apart from all others: {which} may stand for a "
        "missing value"
    )
    remedy = f"empty.{key(column.name)} = [{', '.join(map(quoted, shown))}], and set missing"
    numbers = {"values": [float(one) for one in shown], "cells": int(counts[found].sum())}
    yield a_flaw("placeholder", column.name, sentence, remedy, numbers, mends={"empty": tuple(shown)})


def _below_zero(different: Array, counts: Array) -> list[int]:
    """The places of negative numbers such as -9 and -8 where all others are 0 or more: of a few codes, or
    each repeated.
    """
    below = int((different < 0).sum())
    others = different[below:]
    coded = 2 <= len(others) <= _DIFFERENT and (others == np.rint(others)).all() and counts.sum() >= MANY
    repeated = len(others) >= _DIFFERENT and counts[:below].min(initial=_REPEATS) >= _REPEATS
    coded = coded and different[0] < -1
    nines = all(_NINES.fullmatch(f"{value:.15g}") for value in different[:below].tolist())
    return list(range(below)) if nines and (coded or repeated) else []


def _at_an_end(different: Array, counts: Array) -> list[int]:
    """The places of repeated numbers at the ends of the range, farther from all others than these lie apart;
    among few codes they have two digits at least.
    """
    found = []
    least = _SHORT if len(different) <= _DIFFERENT else 0
    for step in (1, -1):
        ends, often = different[::step], counts[::step]
        for many in range(min(_CODES, len(ends) - 2), 0, -1):  # such as 97, 98 and 99
            codes, others = ends[:many], ends[many:]
            nines = all(_NINES.fullmatch(f"{code:.15g}") and abs(code) > least for code in codes.tolist())
            far = abs(codes[-1] - others[0]) > abs(others[-1] - others[0])
            if nines and far and often[:many].min() >= _REPEATS:
                found += [(j if step == 1 else -1 - j) for j in range(many)]
                break
    return found


def _dates(column: ColumnProfile, values: Array, tries: WholeColumns) -> Flaw | None:
    """Whole numbers that are dates such as 20240229, but for a few that stand for none."""
    if not len(values) or np.mean(values >= _FIRST_DATE) < _NEARLY:  # most columns, without their median
        return None
    middle = np.median(values)
    zeros = min(_CLOCKS, key=lambda zeros: abs(middle / 10**zeros - _LAST_DATE))
    near = (values >= _FIRST_DATE * 10**zeros) & (values < (_LAST_DATE + 1) * 10**zeros)
    others = [f"{value:.0f}" for value in np.unique(values[~near])[: _FEW + 1].tolist()]
    if near.mean() < _NEARLY or len(others) > _FEW:
        return None
    empty, encode = [*others, "00000000"] if "0" in others else others, _DATE + _CLOCKS[zeros]
    if tries.fault(column.name, encode, empty):
        return None
    return mended_by(
        "date",
        column.name,
        f"holds dates as whole numbers, such as {'9' * (8 + zeros)}",
        encode,
        refused=False,
        empty=empty,
    )


def _serials(values: Array, low: float, high: float) -> str:
    """What whole numbers count if they are days as a spreadsheet counts them; "" if they are none."""
    whole = _SERIALS[0] <= low <= high <= _SERIALS[1] and (values == np.rint(values)).all()
    return "days of a spreadsheet since 1900" if whole else ""


def _epoch(low: float, high: float) -> str:
    """What numbers from ``low`` to ``high`` count if they are times since 1970; "" if they are none."""
    scales = _IN_A_SECOND.items()
    return next((f"{u} since 1970" for u, scale in scales if scale * _FROM <= low <= high <= scale * _TO), "")
