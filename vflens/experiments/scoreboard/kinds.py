"""What is compared of an attack; published rows carry it, for attacks whose extra is not installed."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from vflens.plugins.attack import installed_attack
from vflens.storage.arrow import parquet_rows
from vflens.types import Knowledge

#: The page has a link to it in ``docs``: a wheel has the rows too, and there is one copy of them.
PUBLISHED = Path(__file__).with_name("scoreboard.parquet")


class Kind(NamedTuple):
    """What an attack ``estimates``, or "means" of columns alone, and the knowledge that it ``needs``."""

    estimates: str
    needs: frozenset[Knowledge]


def kind_of(attack: str) -> Kind | None:
    """The kind of an installed ``attack``, else that of its published rows; None if it has none."""
    found = installed_attack(attack)
    if found is None:
        return _published().get(attack)
    return Kind("means" if found.means_only else found.estimates, found.needs)


@cache
def _published() -> dict[str, Kind]:
    rows = {row["attack"]: row for row in parquet_rows(PUBLISHED) if row.get("estimates")}
    return {a: Kind(r["estimates"], frozenset(map(Knowledge, r["needs"].split()))) for a, r in rows.items()}
