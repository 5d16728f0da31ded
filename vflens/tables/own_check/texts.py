"""Recognisers of columns of text: numbers with marks, units and limits, dates, times, codes, words.

Each is a function of :class:`SeenTexts` of a column: a flaw, or None if the column is of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vflens.storage.arrow import in_numpy, strings
from vflens.tables.encodings import BELOW, MOST_CATEGORIES, Conversion
from vflens.tables.own_check.flaw import Flaw, a_flaw, constant, id_like, key, left_out, mended_by, of, quoted
from vflens.tables.own_check.profile import MANY, ColumnProfile
from vflens.tables.reading import WholeColumns
from vflens.tables.written.dates import NEVER, formats_of, stand_for_none, times_of
from vflens.tables.written.numbers import MARKS, PLAIN, SCALE, marks_of, split_numbers

if TYPE_CHECKING:
    import pyarrow as pa

_TRIED = 10_000  # different texts
_WORDS = 20  # different texts among numbers or dates that may stand for a missing value
_UNITS = 5  # at most, that a sentence names
_CLOCKS = ("uhr", "am", "pm")  # words behind a time of day
_NEARLY = 0.95
_NUMBER = r"[+-]?\d+(?:[.,]\d+)?"
_RANGE = rf"^\s*({_NUMBER})\s*(?:[-/–]|to|bis|à)\s*{_NUMBER}(?:\s*[^\W\d]\S*)?\s*$"
#: What programs write for a missing number: Stata and SAS . and .a to .z, others -, ? or ..
_GAP = r"^\s*(?:\.[a-zA-Z_]?|\.\.+|[-–—?*…]+)\s*$"
#: Texts that point at a person or a thing, by what they are.
_CODES = {
    "mail addresses": r"^\S+@\S+\.\S+$",
    "account numbers (IBAN)": r"(?i)^[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7} ?[A-Z0-9]{0,3}$",
    "telephone numbers": r"^(?:\+|00?)[1-9][\d ()/.-]{5,}\d$",
    "web addresses": r"^(?:https?://|www\.)\S+$",
    "network addresses": r"^\d{1,3}(?:\.\d{1,3}){3}$",
    "identifiers (UUID)": r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
}
_ICD = r"^[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,4})?[*+†!]?$"
#: Words whose order is known, each scale from least to most.
_SCALES = tuple(
    scale.split("|")
    for scale in (
        "none|very low|low|mid|middle|medium|moderate|high|very high",
        "sehr niedrig|niedrig|gering|mittel|hoch|sehr hoch",
        "never|rarely|seldom|sometimes|often|usually|always",
        "nie|selten|manchmal|oft|immer",
        "none|mild|moderate|severe",
        "keine|sehr leicht|leicht|mäßig|mittel|mittelschwer|mittelgradig|stark|schwer|sehr schwer",
        "jamais|rarement|parfois|souvent|toujours",
        "très faible|faible|léger|moyen|modéré|élevé|fort|sévère|très élevé",
        "trifft nicht zu|trifft eher nicht zu|teils teils|trifft eher zu|trifft zu",
        "ungenügend|mangelhaft|ausreichend|befriedigend|gut|sehr gut",
        "minor|moderate|major|critical",
        "minimal|mild|moderate|severe|extreme",
        "strongly disagree|disagree|neutral|agree|strongly agree",
        "very poor|poor|fair|average|good|very good|excellent",
        "xs|s|small|m|medium|l|large|xl|xxl",
        "first|second|third|fourth|fifth",
        "none|primary|lower secondary|secondary|upper secondary|tertiary|bachelor|master|doctorate",
    )
)


_NUMERALS = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"]
_ARABIC = r"(\D*)(\d+)(?:st|nd|rd|th|er|e|\.)?([a-d]?)(\D*)"
_LED = r"\W*(\d+)\s*[.):\]=]+\s*[^\W\d]"
_ROMAN = rf"((?:.*[^a-z])?)({'|'.join(reversed(_NUMERALS[1:]))})([a-d]?)\.?((?:[^a-z].*)?)"


class SeenTexts(NamedTuple):
    """A ``column``, its different ``texts``, those ``odd`` that are no plain numbers, and those ``marked``
    among them: with a digit, where the others are few words.
    """

    column: ColumnProfile
    texts: pa.Array
    odd: pa.Array
    marked: pa.Array
    tries: WholeColumns


def of_text(column: ColumnProfile, tries: WholeColumns) -> Flaw:
    """What a column of text is."""
    import pyarrow.compute as pc

    texts = column.different()
    odd = texts.filter(pc.invert(pc.match_substring_regex(texts, PLAIN))).slice(0, _TRIED)
    digits = odd.filter(pc.match_substring_regex(odd, r"\d"))
    never = pc.match_substring_regex(digits, NEVER)
    digits = digits.filter(pc.invert(never))
    few = len(odd) - len(digits) <= _WORDS
    seen = SeenTexts(column=column, texts=texts, odd=odd, marked=digits if few else odd, tries=tries)
    found = (recognise(seen) for recognise in RECOGNISERS) if len(seen.marked) else iter(())
    return next(filter(None, found), None) or _words(seen)


def _code(seen: SeenTexts) -> Flaw | None:
    name = seen.column.name
    kind = next((kind for kind, pattern in _CODES.items() if _nearly(seen.odd, pattern)), "")
    if kind:
        return a_flaw("code", name, f"{name} holds {kind}", left_out(name), refused=True)
    if _nearly(seen.odd, _ICD) and len(seen.texts) > MOST_CATEGORIES:
        sentence = (
            f"{name} holds {len(seen.texts):,} different codes, categories are {MOST_CATEGORIES:,} at most"
        )
        remedy = f"group them, such as by their first three characters, or {left_out(name)}"
        return a_flaw("many categories", name, sentence, remedy, refused=True)
    return None


def _number(seen: SeenTexts) -> Flaw | None:
    """Numbers of one unit, or of several, which are no numbers of one column."""
    marks = marks_of(seen.marked)
    if not marks:
        return None
    name = seen.column.name
    limits, units, _ = split_numbers(seen.texts, marks[0])
    named = [unit or "none" for unit in units.unique().drop_null().to_pylist()]
    if len(named) > 1:
        if all(len(unit) == 1 and unit.isalpha() for unit in named) or len(seen.texts) <= _WORDS:
            return None  # flats 1A, 1B
        units_named = f", {', '.join(named)}" if len(named) <= _UNITS else ""  # more are texts of persons
        sentence = f"{name} holds numbers in {len(named)} units{units_named}"
        return a_flaw("several units", name, sentence, "give all cells one unit", refused=True)
    kinds = ["number" if how == next(iter(MARKS)) else f"number:{how}" for how in marks]
    what = f"holds numbers as text, such as {_masked(seen.marked)}"
    if any(limit for limit in limits.unique().to_pylist()):
        return _proposed("limits", seen, _limits(seen), [f"{kind}:{BELOW}half" for kind in kinds])
    if _has(seen.marked, rf"\d(?:{SCALE})"):
        return _proposed("powers", seen, f"{what}, k, M and such read as thousands and millions", kinds)
    unit = f" with the unit {named[0]}" if named[0][0].isalpha() and named != ["none"] else ""
    return _proposed("number as text", seen, f"{what}{unit}", kinds)


def _limits(seen: SeenTexts) -> str:
    """Which cells are limits, counted in the whole column, and what becomes of them."""
    sides = (("below", "[<≤]", "half of it"), ("above", "[>≥]", "the limit"))
    counts = {side: seen.tries.count(seen.column.name, rf"^\s*{marks}") for side, marks, _ in sides}
    of_sides = (
        f"numbers {side} a limit in {of(counts[side], seen.column.present, 'cells')}, read as {becomes}"
        for side, _, becomes in sides
        if counts[side]
    )
    return f"holds {' and '.join(of_sides)}, such as {_masked(seen.marked)}"


def _time(seen: SeenTexts) -> Flaw | None:
    wrong = times_of(seen.marked)[1]
    if wrong.mean() > 1 - _NEARLY or _in_one_unit(seen.marked):
        return None
    what = f"holds times or durations as text, such as {_masked(seen.marked)}"
    return _proposed("time", seen, what, ["time"])


def _in_one_unit(texts: pa.Array) -> bool:
    """Whether these are numbers of one unit, such as minutes, which need not become days."""
    units = split_numbers(texts, (marks_of(texts) or [next(iter(MARKS))])[0])[1].unique().to_pylist()
    return len(units) == 1 and units[0] is not None and units[0].casefold() not in _CLOCKS


def _date(seen: SeenTexts) -> Flaw | None:
    formats = formats_of(seen.marked)
    what = f"holds dates as text, such as {_masked(seen.marked)}"
    return _proposed("date", seen, what, [f"date:{how}" for how in formats]) if formats else None


def _short_date(seen: SeenTexts) -> Flaw | None:
    """Years of two digits: which century is asked, never guessed."""
    formats = formats_of(seen.marked, short=True)
    if not formats:
        return None
    name, what = seen.column.name, f"holds dates as text, such as {_masked(seen.marked)}"
    remedy = (
        "of which century? Write four, or name the first possible year, as in "
        f"encode.{key(name)} = {quoted(f'date:{formats[0]}:from=1930')}"
    )
    return a_flaw("two-digit years", name, f"{name} {what}, with years of two digits", remedy, refused=True)


def _range(seen: SeenTexts) -> Flaw | None:
    """Two numbers in a cell: classes of size where they are few, else two columns in one."""
    if not _nearly(seen.marked, _RANGE) or len(seen.texts) <= _WORDS:
        return None
    name = seen.column.name
    sentence = f"{name} holds two numbers in a cell, such as {_masked(seen.marked)}"
    return a_flaw("two numbers", name, sentence, f"make two columns of it, or {left_out(name)}", refused=True)


RECOGNISERS: tuple[Callable[[SeenTexts], Flaw | None], ...] = (
    _time,
    _date,
    _short_date,
    _code,
    _number,
    _range,
)


def _words(seen: SeenTexts) -> Flaw:
    """A column whose texts are no numbers and no dates."""
    column, name, different = seen.column, seen.column.name, len(seen.texts)
    if column.texts < column.present / 2 or _are_gaps(seen):
        return _some_text(seen)
    if different == column.present >= MANY:
        return id_like(name, "holds another text in each row", refused=True)
    if different > MOST_CATEGORIES:
        return many_texts(column, different)
    if different == 1 and column.missing:
        return constant(name, column.missing, column.rows)
    if different == 2:
        return mended_by("two words", name, "holds two different texts", "ordinal")
    scale = _scale(seen.texts.to_pylist())
    what = f"holds text, {different:,} different"
    if scale:
        listed = ", ".join(map(quoted, scale))
        what += f", which have an order if categories.{key(name)} = [{listed}] with the kind ordinal is right"
    return mended_by("text", name, what, "one_hot", {"different": different})


def _scale(words: Sequence[str]) -> list[str]:
    """``words`` from least to most, by a known scale or by the first numbers of ranges; [] of others."""
    bare = {word: " ".join(re.split(r"[\s_-]+", word.strip().casefold())) for word in words}
    if len(set(bare.values())) < len(words):
        return []
    for scale in _SCALES:
        if set(bare.values()) <= set(scale):
            return sorted(words, key=lambda word: scale.index(bare[word]))
    if numbered := _numbered(bare):
        return sorted(words, key=lambda word: numbered[word])
    starts = {word: re.search(r"\d+", word) for word in words if re.search(r"\d\D+\d|[<>+]|\d", word)}
    if len(starts) < len(words) or not sum(bool(re.match(_RANGE, word)) for word in words) >= len(words) / 2:
        return []
    return sorted(words, key=lambda word: (float(m.group()) if (m := starts[word]) else 0.0, "<" not in word))


def _numbered(bare: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """The number of each word, and the letter behind it, of words such as T2a, 3rd and Stage IV that are
    alike beside them, or begin with different numbers; {} of others.
    """
    begun = {word: re.match(_LED, text) for word, text in bare.items()}
    led = {word: (int(match[1]), "") for word, match in begun.items() if match}
    if len(set(led.values())) == len(bare) <= _WORDS:
        return led
    for pattern in (_ARABIC, _ROMAN):
        found = {word: re.fullmatch(pattern, text) for word, text in bare.items()}
        parts = {word: match.groups() for word, match in found.items() if match}
        alike = len({(before, behind) for before, _, _, behind in parts.values()}) == 1
        if len(parts) < len(bare) or not alike or len(parts) > _WORDS:
            continue
        if pattern == _ARABIC and any(letter and not before for before, _, letter, _ in parts.values()):
            continue  # flats 1A, 1B
        return {word: (_number_of(number), letter) for word, (_, number, letter, _) in parts.items()}
    return {}


def _number_of(text: str) -> int:
    return int(text) if text.isdigit() else _NUMERALS.index(text)


def _some_text(seen: SeenTexts) -> Flaw:
    column, name = seen.column, seen.column.name
    texts = of(column.texts, column.present, "cells")
    sentence = f"{name} holds numbers, but text in {texts}, first in data row {column.first_text}"
    remedy = "correct these cells, or leave them empty and set missing"
    if _are_gaps(seen):
        remedy = f"empty.{key(name)} = [{', '.join(map(quoted, seen.odd.to_pylist()))}], and set missing"
    mends = {"empty": tuple(seen.odd.to_pylist())} if len(seen.odd) <= _WORDS else {}
    found = {"texts": column.texts}
    return a_flaw("text among numbers", name, sentence, remedy, found, refused=True, mends=mends)


def _are_gaps(seen: SeenTexts) -> bool:
    """Whether all texts beside numbers are marks of a missing value."""
    return (seen.column.mixed or len(seen.odd) < len(seen.texts)) and _share(seen.odd, _GAP) == 1


def many_texts(column: ColumnProfile, different: int) -> Flaw:
    """More different texts than categories may be."""
    sentence = (
        f"{column.name} holds {different:,} different texts, categories are {MOST_CATEGORIES:,} at most"
    )
    remedy = f"group them, or {left_out(column.name)}"
    return a_flaw("many categories", column.name, sentence, remedy, {"different": different}, refused=True)


def _proposed(kind: str, seen: SeenTexts, what: str, encodes: list[str]) -> Flaw:
    """A flaw that one of ``encodes`` mends, if it reads the whole column; else what to correct first."""
    name, tries = seen.column.name, seen.tries
    empties = {encode: _unread(seen.texts, encode) for encode in encodes}
    faults = {
        encode: (seen.column.mixed or _fault(seen.texts, encode, none)) and tries.fault(name, encode, none)
        for encode, none in empties.items()
    }
    if fit := [encode for encode, fault in faults.items() if not fault]:
        also = f" (or {fit[1]})" if len(fit) > 1 else ""
        if never := dict.fromkeys(day[1] for text in empties[fit[0]] if (day := re.match(NEVER, text))):
            also += f", {' and '.join(never)} apart from all others, which may stand for none"
        return mended_by(kind, name, f"{what}{also}", fit[0], empty=empties[fit[0]])
    sentence = f"{name} {what}, but {faults[encodes[0]]}"
    remedy = f"correct or empty these cells, then set encode.{key(name)} = {quoted(encodes[0])}"
    return a_flaw(kind, name, sentence, remedy, refused=True)


def _fault(texts: pa.Array, encode: str, empty: Sequence[str]) -> str:
    """What keeps these different ``texts`` from being read as ``encode``."""
    import pyarrow.compute as pc

    conversion = Conversion("", encode)
    conversion.numbers(texts.filter(pc.invert(pc.is_in(texts, strings(empty)))) if empty else texts, 0)
    return conversion.fault


def _unread(texts: pa.Array, encode: str) -> list[str]:
    """The ``texts`` that are none of the kind ``encode``, or stand for no date; [] of too many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = Conversion("", encode).numbers(texts, 0)
    other = np.isnan(days) & (in_numpy(pc.binary_length(texts)) > 0)
    if encode.startswith("date"):
        other |= stand_for_none(texts, days)
    return texts.filter(pa.array(other)).to_pylist() if other.sum() <= _WORDS else []


def _has(texts: pa.Array, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _nearly(texts: pa.Array, pattern: str) -> bool:
    return _share(texts, pattern) >= _NEARLY


def _share(texts: pa.Array, pattern: str) -> float:
    """The share of ``texts`` that match; 0 of none."""
    import pyarrow.compute as pc

    return float(in_numpy(pc.match_substring_regex(texts, pattern)).mean()) if len(texts) else 0.0


def _masked(texts: pa.Array) -> str:
    """The first of ``texts``, every digit a 9: its form, not its value."""
    return re.sub(r"\d", "9", texts[0].as_py())
