"""What changed between two versions of the scoreboard: verdicts, ranks, and what is new, from both files."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from vflens.experiments.scoreboard.board import FAMILIES, Board, boards
from vflens.experiments.scoreboard.grid import ScoreboardGrid
from vflens.experiments.scoreboard.lines import item, listed
from vflens.experiments.scoreboard.ranks import ranked
from vflens.experiments.scoreboard.tuned import is_apart
from vflens.experiments.sweeps.pool import Rows
from vflens.types import Document
from vflens.words import counted

#: (section, defence, what is estimated) → the verdict; (threat model, attack) → its rank of so many.
Verdicts: TypeAlias = Mapping[tuple[str, str, str], str]
Ranks: TypeAlias = Mapping[tuple[str, str], tuple[int, int]]


def changes(old: Rows, new: Rows, grid: ScoreboardGrid) -> Document:
    """ "new" attacks and defences by kind, and their "places"; "verdicts" and "ranks" that are others: before
    and after. Ranks are compared among the attacks that both versions have; tuned rows have none.

    Both are judged by today's rules: what differs is what was measured, and whom an attack meets.
    """
    old, new = ([row for row in rows if not is_apart(row)] for rows in (old, new))
    before, after = boards(old, grid), boards(new, grid)
    was, verdicts = _verdicts(before), _verdicts(after)
    fresh = {kind: sorted(_names(new, kind) - _names(old, kind)) for kind in ("attack", "defense")}
    common = _names(old, "attack") & _names(new, "attack")
    first, ranks = (_ranks(every, common) for every in (before, after))
    places = {
        key: place for key, place in _ranks(after, _names(new, "attack")).items() if key[1] in fresh["attack"]
    }
    return {
        "new": fresh,
        "places": [[*key, place] for key, place in places.items()],
        "verdicts": [
            [*key, was[key], now]
            for key, now in verdicts.items()
            if key in was and _kind(was[key]) != _kind(now)
        ],
        "ranks": [[*key, first[key], now] for key, now in ranks.items() if first.get(key, now) != now],
    }


def _kind(verdict: str) -> str:
    """A verdict without its figures, but for the attack that decides it."""
    return verdict.partition(", ")[0]


def said(found: Document) -> str:
    """:func:`changes` as a list in Markdown."""
    lines = []
    for kind, word in (("attack", "attack"), ("defense", "defence")):
        if names := found["new"][kind]:
            lines.append(item(f"{counted(len(names), f'new {word}')}: {listed(names)}"))
    for threat, attack, place in found["places"]:
        lines.append(item(f"{threat}: `{attack}` has rank {_rank(place)}"))
    for section, defense, family, before, after in found["verdicts"]:
        lines.append(item(f"{section}, `{defense}`, {family}: {after}; it was: {before}"))
    for threat, attack, before, after in found["ranks"]:
        lines.append(
            item(f"{threat}: `{attack}` has rank {_rank(after)} of those before, it had {_rank(before)}")
        )
    return "\n".join(lines or ["Nothing that the page states."])


def _rank(place: tuple[int, int]) -> str:
    return "{} of {}".format(*place)


def _names(rows: Rows, kind: str) -> set[str]:
    return {row[kind] for row in rows if row.get("figure") is not None}


def _verdicts(every: Sequence[Board]) -> Verdicts:
    return {
        (board.title, defense, FAMILIES[family]): board.words(defense, family)
        for board in every
        for defense in board.found
        for family in FAMILIES
        if board.of_family(defense, family)
    }


def _ranks(every: Sequence[Board], attacks: Collection[str]) -> Ranks:
    """Those of ``attacks``, among themselves."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for threat, rows in ranked(every).items():
        chosen = [row for row in rows if row.attack in attacks]
        for row in chosen:
            rivals = [other for other in chosen if other.family == row.family]
            place = 1 + sum(other.mean < row.mean for other in rivals)
            found[str(threat), row.attack] = place, len(rivals)
    return found
