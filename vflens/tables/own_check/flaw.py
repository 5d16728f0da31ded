"""One thing to be mended in a party's own file, with the line that mends it."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, dataclass

from vflens.names import listed
from vflens.types import Document

#: Kinds of flaws whose columns a run is better without.
LEFT_OUT = ("nameless", "constant", "id-like", "many categories", "unreadable", "huge integers")


@dataclass(frozen=True)
class Flaw:
    """Its ``kind``, a sentence about a ``column`` ("" of the rows), what mends it.

    ``remedy`` is a line of the party's TOML file or says what to do; ``flag`` is the same for
    ``vflens audit``, "" where it has none. ``numbers`` are those of the sentence.
    ``refused``: as described, no run reads it.
    """

    kind: str
    column: str
    sentence: str
    remedy: str
    numbers: Document
    flag: str
    refused: bool

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}" + (f" (audit: {self.flag})" if self.flag else "")


@dataclass(frozen=True)
class TableCheck:
    """All flaws in ``file``, a table of ``rows`` with these ``features``."""

    file: str
    rows: int
    features: tuple[str, ...]
    flaws: tuple[Flaw, ...]

    def lines(self) -> list[str]:
        """For people: a line for each flaw, then the features without those to be left out."""
        left_out = {flaw.column for flaw in self.flaws if flaw.kind in LEFT_OUT}
        kept = [name for name in self.features if name not in left_out]
        if not left_out or not kept:
            return [str(flaw) for flaw in self.flaws]
        flag = f"--columns {shlex.quote(listed(kept))}"
        rest = f"without these columns: columns = [{', '.join(map(quoted, kept))}] (audit: {flag})"
        return [*map(str, self.flaws), rest]

    def record(self) -> Document:
        """For ``--json``."""
        return {**asdict(self), "lines": self.lines()}


def a_flaw(
    kind: str,
    column: str,
    sentence: str,
    remedy: str,
    numbers: Document | None = None,
    *,
    refused: bool = False,
    flag: str = "",
) -> Flaw:
    """The :class:`Flaw` of these fields."""
    return Flaw(
        kind=kind,
        column=column,
        sentence=sentence,
        remedy=remedy,
        numbers=numbers or {},
        flag=flag,
        refused=refused,
    )


def mended_by(
    kind: str, column: str, what: str, encode: str, numbers: Document | None = None, *, refused: bool = True
) -> Flaw:
    """A flaw of ``column`` that ``encode`` mends."""
    flag, remedy = f"--encode {shlex.quote(f'{column}={encode}')}", f"encode.{key(column)} = {quoted(encode)}"
    return a_flaw(kind, column, f"{column} {what}", remedy, numbers, refused=refused, flag=flag)


def key(name: str) -> str:
    """``name`` as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """``text`` as a string of TOML."""
    return json.dumps(text, ensure_ascii=False)
