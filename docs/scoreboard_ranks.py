"""The page's tables of ranks, and of tuned rows beside default ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scoreboard_lines import paragraph, table
from scoreboard_tuned import TUNED, TUNING_SEEDS, choices

from vflens.experiments.pages.cost import FEWEST
from vflens.experiments.scoreboard.board import FAMILIES, Board
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED
from vflens.experiments.scoreboard.keys import sends
from vflens.experiments.scoreboard.lines import listed
from vflens.experiments.scoreboard.ranks import RANK_HEADS, TIE, rank_lines, reads_grants
from vflens.experiments.scoreboard.tuned import GRIDS
from vflens.experiments.scoreboard.verdicts import CellResult, over_seeds
from vflens.experiments.sweeps.pool import Rows
from vflens.types import Document

_RANKS = f"""\
## Attacks by rank

A **section** is a federation on one data set. The **relative error** is the mean over the sections in which
the attack has at least {FEWEST} finite results and nothing defends; its interval takes the seeds of sections
as independent. *Best in* counts the defences of those sections, and nothing that defends, behind which it
beats a blind guess and no attack of its threat model has a smaller error on what it estimates; "of" so many
with enough results. Attacks of other sections met other tasks. Protected training follows below; masked sums
and the regression of a number have no ranks.
"""
_TUNED = """\
## Tuned and default settings

For attacks whose settings matter, the best of a few, where nothing defends. What is best is decided on
{seeds} other seeds, with other rows: no truth of a scored run takes part. The **budget** is the number of
settings tried, and the seconds of a processor that all of them took on these seeds, federations included.
A rank is that among attacks on the same, of the same threat model, in the same section.
"""


def rank_tables(boards: Sequence[Board]) -> Iterator[str]:
    """The tables of ranks, with a lead."""
    found = dict(rank_lines(boards))
    if not found:
        return
    yield _RANKS
    if sending := sorted({line[0] for lines in found.values() for line in lines if sends(line[0])}):
        yield paragraph(f"These break the protocol, and all others only read: {listed(sending)}.")
    for threat, lines in found.items():
        yield f"### {threat}\n"
        yield table(RANK_HEADS, lines)


def tuned_tables(boards: Sequence[Board], rows: Rows) -> Iterator[str]:
    """The section on the trials and chosen settings among ``rows``; nothing where there are none."""
    lines = [
        line
        for federation, data, attack, best in choices(rows)
        for board in boards
        if (board.federation, board.data) == (federation, data)
        for line in _lines(board, [r for r in rows if _is_of(r, board, attack)], attack, best)
    ]
    heads = [
        "attack",
        "section",
        "default: rank",
        "error",
        "best settings",
        "rank",
        "error",
        "tried",
        "seconds",
    ]
    yield from [_TUNED.format(seeds=len(TUNING_SEEDS)), table(heads, lines)] if lines else []


def _is_of(row: Document, board: Board, attack: str) -> bool:
    name = row["attack"].partition(":")[0]
    return (row["federation"], row["data"], name) == (board.federation, board.data, attack)


def _lines(board: Board, rows: Rows, attack: str, best: int) -> Iterator[list[str]]:
    default = board.found[UNDEFENDED].get(attack)
    final = over_seeds([r for r in rows if r["attack"].endswith(f":{TUNED}") and r.get("blind") is not None])
    if default is None or final is None:
        return
    seconds = sum({r["seed"]: r["seconds"] for r in rows if r["seed"] in TUNING_SEEDS}.values())
    chosen = ", ".join(f"`{name} = {value}`" for name, value in GRIDS[attack][best].items()) or "default"
    budget = str(len(GRIDS[attack])), f"{seconds:.0f}"
    yield [attack, board.title, *_standing(board, default), chosen, *_standing(board, final), *budget]


def _standing(board: Board, found: CellResult) -> tuple[str, str]:
    """The rank of ``found`` among the others on the same of the same threat model, and its relative error."""
    setting, attack = FEDERATIONS[board.federation].setting, found.attack.partition(":")[0]
    rivals = [
        other
        for name, other in board.found[UNDEFENDED].items()
        if (name != attack and other.family == found.family and other.is_decided)
        and reads_grants(other, setting) is reads_grants(found, setting)
    ]
    rank = 1 + sum(other.mean < found.mean - TIE for other in rivals)
    return (
        f"{rank} of {len(rivals) + 1} on {FAMILIES[found.family]}",
        f"{found.mean:.2f} ± {found.relative.half:.2f}",
    )
