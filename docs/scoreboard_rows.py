"""What is written into the file of results: new rows in place of old ones, and what attacks estimate."""

from __future__ import annotations

from typing import Any

from vflens.experiments.scoreboard.grid import Place
from vflens.experiments.scoreboard.kinds import kind_of
from vflens.experiments.sweeps.pool import Rows
from vflens.types import Document


def renewed(old: Rows, new: Rows) -> Rows:
    """``old`` rows of which ``new`` ones take the place, where they are of the same attack and federation."""
    fresh = {_what(row) for row in new}
    return [*(row for row in old if _what(row) not in fresh), *new]


def _what(row: Document) -> tuple[Any, ...]:
    return (*(row[name] for name in Place._fields), row["attack"])


def described(rows: Rows) -> Rows:
    """``rows`` with the kinds of their attacks, where they have one."""
    kinds = {name: kind_of(name) for name in {row["attack"] for row in rows}}
    columns = {
        n: {"estimates": k.estimates, "needs": " ".join(sorted(k.needs))} for n, k in kinds.items() if k
    }
    return [{**row, **columns.get(row["attack"], {})} for row in rows]
