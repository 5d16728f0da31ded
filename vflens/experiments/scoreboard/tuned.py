"""Tuned rows beside default ones: of a small grid of settings the best on seeds that are not scored.

Another seed deals other rows of the data set and draws another start, as an adversary could who has people of
its own. So no truth of a scored run decides a setting.
"""

from collections.abc import Mapping, Sequence

from vflens.errors import VflensError
from vflens.experiments.scoreboard.grid import FEDERATIONS, Place
from vflens.experiments.scoreboard.keys import keyed, with_keys
from vflens.experiments.sweeps.pool import Rows
from vflens.types import Document
from vflens.words import counted

#: Attack → the settings that are tried, over those of the scoreboard; the first are these.
GRIDS: Mapping[str, Sequence[Document]] = {
    "agnostic": ({}, {"l2": 0.01}, {"l2": 1.0}),
    "clear_columns": ({}, {"sweeps": 30}, {"sweeps": 100}),
    "cls": tuple({"start": start} for start in ("clamped_ls", "zero", "half", "random")),
    "gia": tuple(
        {"start": start, "steps": steps} for steps in (100, 1000) for start in ("zero", "half", "random")
    ),
    "grna": tuple({"learning_steps": n, "learning_rate": rate} for n in (30, 200) for rate in (1e-3, 1e-2)),
}


def is_apart(row: Document) -> bool:
    """Whether ``row`` is of a trial or of chosen settings."""
    name, _, label = row["attack"].partition(":")
    return name in GRIDS and bool(label)


def age(rows: Rows) -> str:
    """How old ``rows`` are, in words: how many have the key of today's settings and code."""
    asked: dict[tuple[Place, str], Rows] = {}
    for row in rows:
        asked.setdefault((Place(*(row.get(name, 0) for name in Place._fields)), row["attack"]), []).append(
            row
        )
    today = sum(row.get("key") in keys for of, own in asked.items() if (keys := _keys(*of)) for row in own)
    whole = counted(len(rows), "row", ",")
    share = f"{today:,} of {whole} ({100 * today // len(rows)} %)" if rows else whole
    return f"{share} have the key of today's settings and code; what it gives of the others is not known."


def _keys(place: Place, attack: str) -> set[str]:
    """Those that a row may have today; none where its data or the code of a plug-in are absent."""
    name, _, label = attack.partition(":")
    try:
        if not label:
            return {key for key, _ in keyed(place, [attack]).values()}
        own = FEDERATIONS[place.federation].attack(name, place.data) or {}
        tables = [{**own, **one, "name": attack} for one in GRIDS.get(name, ())]
    except VflensError:
        return set()
    return {key for table in tables for key, _ in with_keys(place, {attack: table}).values()}
