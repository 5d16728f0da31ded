"""Two audits beside each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vflens.experiments.audit.record import read_audit
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.outcome.table import Pairs, differences, long_rows
from vflens.experiments.outcome.words import number
from vflens.types import Document, Facts

if TYPE_CHECKING:
    from rich.table import Table

_KEY = ("attack", "subject", "column", "measure")
_SIDES = ("a", "b", "blind_a", "blind_b", "difference")


def compare_audits(a: Path, b: Path) -> Document:
    """The differences between two documents of ``vflens audit --json``.

    Returns:
        ``a``, ``b``: their subjects. ``differences``: ``{attack, subject, column, measure, a, b, blind_a,
        blind_b, difference}``, None for a figure that a side lacks; equal figures are left out. ``equal``.

    Raises:
        DataError: one is no such document.
    """
    (name_a, one), (name_b, other) = _audited(a), _audited(b)
    found = [{name: d[name] for name in (*_KEY, *_SIDES)} for d in differences(one, other, _KEY)]
    return {"a": name_a, "b": name_b, "differences": found, "equal": not found}


def _audited(file: Path) -> tuple[str, Pairs]:
    """The subject of an audit, and its figures by what they are of.

    Raises:
        DataError: ``file`` is none.
    """
    record = read_audit(file)
    rows = long_rows([of_audit(replace(record, subject="your table"))])
    return record.subject, {tuple(row[k] for k in _KEY): (row["value"], row["blind"]) for row in rows}


def compared(facts: Facts) -> Table:
    """The result of :func:`compare_audits` for the terminal, without markup."""
    from rich.table import Table

    grid = Table("what differs", f"a: {facts['a']}", f"b: {facts['b']}", "b − a")
    for d in facts["differences"]:
        what = (
            f"{d['measure']} by {d['attack']}{' of ' + d['column'] if d['column'] else ''} ({d['subject']})"
        )
        sides = (f"{number(d[s])} (blind {number(d[f'blind_{s}'])})" for s in "ab")
        grid.add_row(what, *sides, number(d["difference"]))
    grid.caption = "Equal: no figure differs." if facts["equal"] else None
    return grid
