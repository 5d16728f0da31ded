"""Whether the first line of a CSV file holds names of columns, or the cells of a person."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from itertools import pairwise

from vflens.errors import DataError

_MOST = 0.9  # of the cells of a column, which then are all numbers or dates
_REPEATED = 3  # times at least that a category occurs on average
_RUN = 4  # numbers that rise, as names of columns do
_BEYOND = 0.1  # of the width of a column: how far the first row may lie outside the others
_PLAIN = re.compile(r"[+−-]?\d+(?:[.,]\d+)?")


def refuse_start(start: bytes, encoding: str) -> None:
    """Refuse a file whose first bytes are not those of CSV in ``encoding``.

    Raises:
        DataError: says how to write it.
    """
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and encoding == "utf-8":
        raise DataError("it is UTF-16: save it as UTF-8, with commas")
    if b"\0" in start and not encoding.casefold().startswith(("utf-16", "utf-32")):
        raise DataError("it holds zero bytes, and no text: save it as CSV in UTF-8, with commas")
    if start.removeprefix(codecs.BOM_UTF8)[:4].lower() == b"sep=":
        raise DataError("its first line tells a spreadsheet the delimiter: delete this line")


def refuse_cells(first: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Refuse a file whose ``first`` line is like the ``rows`` below it; no cell is printed.

    Raises:
        DataError: it is.
    """
    if holds_cells(first, rows):
        raise DataError(
            "its first line holds cells like those below it, and no names of columns: begin the file with "
            "one line of names, or set header = false in its description (true, if these are names)"
        )


def holds_cells(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether more columns say that ``first`` is one of their rows than that it is none."""
    whole = [row for row in rows if len(row) == len(first) and row != first]  # names may stand again below
    if len(whole) < 2:
        return False
    named = _counts_columns(first)
    columns = zip(first, zip(*whole, strict=True), strict=True)
    votes = [_vote(name.strip(), [c.strip() for c in cells if c.strip()], named) for name, cells in columns]
    return sum(votes) > 0


def _counts_columns(names: Sequence[str]) -> bool:
    """Whether the numbers among ``names`` are years or places: they rise, in equal steps or many."""
    numbers = [_number(name) for name in names if _PLAIN.fullmatch(name)]
    steps = {round(b - a, 9) for a, b in pairwise(numbers)}
    if not steps or min(steps) <= 0:
        return False
    return len(numbers) >= _RUN or steps == {1} or (len(steps) == 1 and len(numbers) > 2)


def _vote(name: str, cells: Sequence[str], named: bool) -> int:
    """1 of a ``name`` that is like the ``cells``, -1 of one that is not, 0 where nobody knows."""
    if not name or not cells:
        return 0
    forms = [_form(cell) for cell in cells]
    if sum(not re.search(r"[^\W\d_]", form) for form in forms) >= _MOST * len(cells):  # no letters
        if _PLAIN.fullmatch(name) and set(map(len, forms)) == {1}:
            return 0 if named or not _between(name, cells) else 1
        return 1 if _form(name) in forms else -1
    if name in cells or (re.search(r"\d", name) and _form(name) in forms):
        return 1
    return -1 if len(set(cells)) * _REPEATED <= len(cells) else 0


def _form(text: str) -> str:
    """``text`` with each number as one mark: 2021-03-03 is #-#-#, P017 is P#."""
    return "#" if _PLAIN.fullmatch(text) else re.sub(r"\d+", "#", text)


def _number(text: str) -> float:
    return float(text.replace(",", ".").replace("−", "-"))


def _between(name: str, cells: Sequence[str]) -> bool:
    numbers = [_number(cell) for cell in cells]
    beyond = _BEYOND * (max(numbers) - min(numbers))
    return min(numbers) - beyond <= _number(name) <= max(numbers) + beyond


def one_more_than_named(read: Sequence[Sequence[str]]) -> list[str]:
    """The names of all columns, if the header has several cells, one less than the first row; else [].

    R leaves out the name of the first column. Where the first rows end with an empty cell, a delimiter
    ends each row, and the last column has no name.
    """
    if len(read) < 2 or not len(read[1]) - 1 == len(read[0]) > 1:
        return []
    ended = not any(row[-1] for row in read[1:] if row)
    return [*read[0], ""] if ended else ["", *read[0]]
