"""One thing to be mended in a party's own file, with the line that mends it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from vflens.names import listed
from vflens.types import Document
from vflens.words import counted

#: Kinds of flaws whose columns a run is better without.
LEFT_OUT = (
    "nameless",
    "empty",
    "constant",
    "id-like",
    "many categories",
    "unreadable",
    "huge integers",
    "code",
)


@dataclass(frozen=True)
class Flaw:
    """Its ``kind``, a sentence about a ``column`` ("" of the rows), what mends it.

    ``remedy`` is a line of the party's TOML file or says what to do; ``flag`` is the same for
    ``vflens audit``, "" where it has none. ``numbers`` are those of the sentence.
    ``refused``: as described, no run reads it. ``mends`` are the settings that mend it, of its column where
    it has one; {} where its owner must correct cells. They may hold texts of the table: no record has them.
    """

    kind: str
    column: str
    sentence: str
    remedy: str
    numbers: Document
    flag: str
    refused: bool
    mends: Document = field(default_factory=dict)

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
        flaws = [{k: v for k, v in asdict(flaw).items() if k != "mends"} for flaw in self.flaws]
        return {**asdict(self), "flaws": flaws, "lines": self.lines()}


def a_flaw(
    kind: str,
    column: str,
    sentence: str,
    remedy: str,
    numbers: Document | None = None,
    *,
    refused: bool = False,
    flag: str = "",
    mends: Document | None = None,
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
        mends=mends or {},
    )


def mended_by(
    kind: str,
    column: str,
    what: str,
    encode: str,
    numbers: Document | None = None,
    *,
    refused: bool = True,
    empty: Sequence[str] = (),
) -> Flaw:
    """A flaw of ``column`` that ``encode`` mends, where its cells ``empty`` stand for none."""
    flag, remedy = f"--encode {shlex.quote(f'{column}={encode}')}", f"encode.{key(column)} = {quoted(encode)}"
    mends = {"encode": encode, **({"empty": tuple(empty)} if empty else {})}
    if empty:
        remedy += f" once empty.{key(column)} lists its {counted(len(empty), 'other text')}"
        flag = ""
    return a_flaw(kind, column, f"{column} {what}", remedy, numbers, refused=refused, flag=flag, mends=mends)


def key(name: str) -> str:
    """``name`` as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """``text`` as a string of TOML."""
    return json.dumps(text, ensure_ascii=False)


def of(count: int, total: int, what: str = "rows") -> str:
    """ "3 of 200 rows (1.5 %)"."""
    return f"{count:,} of {total:,} {what}" + (f" ({100 * count / total:.2g} %)" if count < total else "")


def left_out(column: str) -> str:
    """The remedy of a ``column`` that is better not used."""
    return f"leave {column} out of columns"


def constant(column: str, missing: int = 0, rows: int = 0) -> Flaw:
    """A ``column`` of one value, or of one and ``missing`` cells of so many rows, such as X and nothing."""
    if missing and rows - missing > 1:
        what = f"holds one value, and none in {of(missing, rows)}, which may mean no"
        return mended_by("marked", column, what, "one_hot:missing")
    return a_flaw("constant", column, f"{column} never varies: it holds one value", left_out(column))


def id_like(column: str, what: str, *, refused: bool = False) -> Flaw:
    """A ``column`` that may identify rows."""
    remedy = f"if it identifies rows {left_out(column)}, or set id_column = {quoted(column)}"
    return a_flaw("id-like", column, f"{column} {what}", remedy, refused=refused)
