"""Writes the description that makes a table fit: the check's own advice, taken until nothing is refused.

Each line of advice was tried on the whole column. What no setting mends is left out, and said.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vflens.errors import DataError
from vflens.tables.cells import ROW_NUMBER, TableFile
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, opened, read_party_table
from vflens.tables.own_check.flaw import LEFT_OUT, Flaw, a_flaw, key, of, quoted
from vflens.tables.own_check.form import form_of
from vflens.tables.own_check.profile import TableProfile, profile
from vflens.tables.own_check.relations import Sketch, relations
from vflens.words import counted

#: A text of more categories makes a table of columns of its own; an audit of as many in all takes a minute.
_MOST_OF_ONE, _MOST_COLUMNS = 50, 40
_CELLS = 1 << 24  # of a table that are read together: 128 MiB
_ID = re.compile(r"(?:^|[^a-z])(?:id|ids|nr|key|uid|uuid|index|rownames|number|code|no)$")
#: What the file may state too, with the defaults of the commands.
_PLANS = (
    "",
    "# [audit]  # the plan of vflens audit; label_kind, tolerance, least_error and slow_rows go here too",
    "# models = 10",
    "# rows = 1000",
    "# known = 50",
    "# seed = 0",
    "# most_leak = 0.2",
    "# most_loss = 0.01",
    '# training = "clear"',
    "",
    "# [release]  # the plan of vflens release",
    '# mechanism = "gaussian"',
    "# lambda = 1",
)
_UNLIKE = 0.95  # of the rows, in a column that once told rows apart
#: Kinds of which the description takes one way, and the owner knows whether it is right.
_ASKED = (
    *("limits", "placeholder", "text among numbers", "epoch", "outlier", "gaps", "labels alike", "id-like"),
    *("function of others", "repeated rows", "leading zeros", "no header", "powers"),
    *("total rows", "unit row", "marked"),
)


@dataclass
class Draft:
    """The settings of a description as it grows; by column ("": of rows) the ``flaws`` that shaped them, by
    kind, and why columns were ``left`` out.
    """

    settings: dict[str, Any]
    columns: list[str]
    rows: int = 0
    flaws: dict[str, dict[str, Flaw]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> PartyFile:
        """The description so far."""
        return PartyFile.model_validate({**self.settings, "columns": tuple(self.columns)})

    def only(self, columns: set[str]) -> PartyFile:
        """The same of ``columns``, and those with gaps, which count together."""
        gaps = self.flaws.get("", {}).get("gaps")
        return self.just(columns | set(gaps.numbers["missing"] if gaps else ()))

    def just(self, columns: set[str]) -> PartyFile:
        """The same of ``columns`` alone."""
        kept = [name for name in self.columns if name in columns]
        settings = {**self.settings, "columns": tuple(kept)}
        for name in ("encode", "empty"):
            settings[name] = {column: v for column, v in settings[name].items() if column in kept}
        return PartyFile.model_validate(settings)

    def leave(self, column: str, why: str) -> bool:
        """Leave a ``column`` out; whether it was there."""
        if column not in self.columns:
            return False
        self.columns.remove(column)
        self.left[column] = why
        for name in ("encode", "empty"):
            self.settings[name].pop(column, None)
        return True

    def take(self, flaw: Flaw) -> set[str]:
        """Do what mends ``flaw``, and remember it; the columns whose description changed."""
        self.flaws.setdefault(flaw.column, {})[flaw.kind] = flaw
        if flaw.column and flaw.column not in self.columns:
            return set()
        many = flaw.numbers.get("different", 0) > _MOST_OF_ONE and flaw.mends.get("encode") == "one_hot"
        if flaw.kind in LEFT_OUT or many or (flaw.column and flaw.refused and not flaw.mends):
            more = f", {_MOST_OF_ONE} at most are taken here: group them" if many else ""
            self.leave(flaw.column, f"{flaw.sentence}{more or f': {flaw.remedy}'}")
            return set()
        if not flaw.column:
            self.settings |= {k: v for k, v in flaw.mends.items() if k == "missing"}
            self.settings["encode"] |= flaw.mends.get("encode", {})
            return set(flaw.mends.get("encode", ()))
        before = repr(self.settings)
        for name, value in flaw.mends.items():
            old = self.settings[name].get(flaw.column, ())
            joined = (*old, *(v for v in value if v not in old)) if name == "empty" else value
            self.settings[name][flaw.column] = joined
        if before != repr(self.settings):
            return {flaw.column}
        if flaw.refused:  # what mends it did not
            self.leave(flaw.column, f"{flaw.sentence}: {flaw.remedy}")
        return set()


def draft(path: Path) -> Draft:
    """The description that makes the table in ``path`` fit, found by reading it whole.

    Raises:
        DataError: it is no table, or no column of it can be read.
    """
    form = form_of(path)
    found = Draft({"file": path.resolve(), **form, "encode": {}, "empty": {}}, [])
    cells = opened(PartyFile.model_validate({**form, "file": path}), path)
    _refuse_title(cells, path)
    ids = _choose_id(found, cells, list(cells.names))
    if not found.columns:
        raise DataError(
            f"{path.name}: its one column tells rows apart, or another mark than , ; | and tabs separates "
            "cells: add columns, or write commas"
        )
    if "header" in form:
        sentence = "the first line holds cells like those below, so columns are called by their places"
        remedy = "begin the file with one line of names, or set header = true if these are names"
        found.flaws.setdefault("", {})["no header"] = a_flaw("no header", "", sentence, remedy)
    changed, sketch = set(found.columns), Sketch()
    while changed:  # a setting that mends may show the next flaw
        check = check_party_table(found.only(changed), see=sketch.see, ids=ids)
        assert check is not None  # it is no folder
        found.rows = check.rows
        changed = set().union(*map(found.take, check.flaws))
        if any(flaw.kind == "empty" for flaw in check.flaws):  # it hides the gaps of others
            changed |= set(found.columns)
        _refuse_empty(found, path)
    while (whole := _read(found, path, sketch)) is None or whole.width > _MOST_COLUMNS:
        if whole is not None and not _leave_widest(found, whole):
            break
        _refuse_empty(found, path)
    assert whole is not None
    _count_gaps_anew(found)
    for flaw in relations(whole, found.columns):
        found.flaws.setdefault(flaw.column, {})[flaw.kind] = flaw
    return found


def _refuse_title(cells: TableFile, path: Path) -> None:
    """A title above the header leaves most columns without a name, though they hold cells."""
    nameless = list(cells.nameless)
    if 2 * len(nameless) <= len(cells.names):
        return
    first = next(cells.blocks(nameless), {})
    if any(column.null_count < len(column) for column in first.values()):
        whole, named = len(cells.names), len(cells.names) - len(nameless)
        raise DataError(
            f"{path.name}: its first line names {named} of {counted(whole, 'column')}: delete the lines "
            "above the names of columns, such as a title"
        )


def _count_gaps_anew(found: Draft) -> None:
    """Ask about the gaps of the columns that are used: some that had gaps may have been left out."""
    gaps = found.flaws.get("", {}).pop("gaps", None)
    if gaps is None:
        return
    if not set(gaps.numbers["missing"]) <= set(found.columns):
        check = check_party_table(found.spec)
        assert check is not None
        gaps = next((flaw for flaw in check.flaws if flaw.kind == "gaps"), None)
    if gaps is None:
        found.settings.pop("missing", None)
    else:
        found.flaws[""]["gaps"] = gaps


def _refuse_empty(found: Draft, path: Path) -> None:
    if not found.columns:
        why = "; ".join(found.left.values())
        raise DataError(f"{path.name}: no column can be read as numbers or categories: {why}")


def _read(found: Draft, path: Path, sketch: Sketch) -> Sketch | None:
    """``sketch`` with all other columns as described; None once one that this refuses was left out."""
    rest, few = [n for n in found.columns if n not in sketch.some], _CELLS // max(1, found.rows) or 1
    try:
        for i in range(0, len(rest), few):
            sketch = sketch.joined(read_party_table(found.just({*rest[i : i + few]})))
        return sketch
    except DataError as error:
        named = next((name for name in found.columns if f"column {name!r}" in str(error)), None)
        if named is None:
            raise
        found.leave(named, str(error))
        return None


def _leave_widest(found: Draft, sketch: Sketch) -> bool:
    """Leave out the column of most categories; whether there was one."""
    widths = {name: len(sketch.some[name]) for name in found.columns if sketch.some[name][0][0]}
    widest = max(widths, key=lambda name: widths[name], default=None)
    if widest is None:
        return False
    made = counted(widths[widest], "column")
    why = f"{widest} makes {made}, all together {_MOST_COLUMNS} at most are taken here"
    return found.leave(widest, f"{why}: group its categories")


def _choose_id(found: Draft, cells: TableFile, names: list[str]) -> TableProfile | None:
    """The first column that tells rows apart and is called so, or has no name; else rows are numbered. What
    is known of the ids, if they were read.
    """
    likely = [n for n in names if n in cells.nameless or _ID.search(n.casefold())]
    texts = [n for n in names[:1] if n not in likely]
    found.columns = names
    for name in [*likely, *texts]:
        spec = PartyFile.model_validate({**found.settings, "id_column": name, "columns": ()})
        of_ids = profile(spec, (), cells)
        whole = not (of_ids.empty_ids or of_ids.repeated_ids)
        if whole and (name in likely or _is_text(cells, name)) and of_ids.rows > 1:
            found.settings["id_column"] = name
            found.columns.remove(name)
            return of_ids
        unlike = of_ids.rows - of_ids.empty_ids - of_ids.repeated_ids
        if name in likely and not whole and unlike > _UNLIKE * of_ids.rows:
            words = f"{name} repeats an earlier id or is empty in {of(of_ids.rows - unlike, of_ids.rows)}"
            found.leave(name, f"{words}: mend it and make it id_column")
    found.settings["id_column"] = ROW_NUMBER
    sentence = "no column tells rows apart, so they are numbered"
    remedy = "parties of a run match rows by these numbers: all files need one order"
    found.flaws.setdefault("", {})["no id"] = a_flaw("no id", "", sentence, remedy)
    return None


def _is_text(cells: TableFile, name: str) -> bool:
    """Whether the first block of a column holds text that is no number."""
    from vflens.tables.exact_numbers import as_floats, is_text

    values = next((block for *_, block in cells.chunks([name])), None)
    if values is None or not is_text(values.type):
        return False
    try:
        as_floats(values)
    except ValueError:  # of the library's errors
        return True
    return False


def as_toml(found: Draft, folder: Path) -> str:
    """``found`` as a file in ``folder``, with a comment for each decision."""
    return "\n".join([*_lines(found, folder), ""])


def _lines(found: Draft, folder: Path) -> Iterator[str]:
    settings = found.settings
    rows = counted(found.rows, "row", ",")
    yield f"# Written by vflens check, which read all of {rows}. Lines that say DECIDE ask you."
    yield f"file = {quoted(os.path.relpath(settings['file'], folder))}"
    for name in ("delimiter", "encoding", "header", "id_column", "missing"):
        if name in settings:
            yield f"{name} = {json.dumps(settings[name], ensure_ascii=False)}"
    for flaw in found.flaws.get("", {}).values():
        yield f"# {_comment(flaw)}"
    yield "columns = ["
    for name in found.columns:
        notes = [_comment(flaw) for flaw in found.flaws.get(name, {}).values()]
        yield f"  {quoted(name)},{_behind('; '.join(notes))}"
    yield "]"
    for name, why in found.left.items():
        yield f"# DECIDE: left out: {quoted(name)}{_behind(why)}"
    for name in ("encode", "empty"):
        if settings[name]:
            yield f"\n[{name}]"
        for column, value in settings[name].items():
            shown = quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"
            yield f"{key(column)} = {shown}"
    yield from _PLANS


def _comment(flaw: Flaw) -> str:
    asked = ("empty" in flaw.mends, " (or " in flaw.sentence, "categories." in flaw.sentence)
    ask = flaw.kind in _ASKED or any(asked)
    return f"{'DECIDE' if ask else 'decided'}: {flaw.sentence}: {flaw.remedy}"


def _behind(text: str) -> str:
    return f"  # {' '.join(text.split())}" if text else ""


def to_decide(found: Draft) -> list[str]:
    """What the owner must decide, in words."""
    kept = [of for column, of in found.flaws.items() if column not in found.left]
    notes = [_comment(flaw) for of_one in kept for flaw in of_one.values()]
    asked = [note.removeprefix("DECIDE: ") for note in notes if note.startswith("DECIDE")]
    return [*asked, *(f"left out: {why}" for why in found.left.values())]
