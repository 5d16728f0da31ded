"""Every result of the scoreboard as one page: defences by leak and price, attacks by rank, and the explorer
of sweeps over its file.
"""

import re
from collections.abc import Iterator
from html import escape

from vflens.experiments.pages.cost import Cost
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import Plot, blind_level, plot, scales, scatter, style
from vflens.experiments.scoreboard.board import FAMILIES, Board, boards, estimated
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED, ScoreboardGrid
from vflens.experiments.scoreboard.ranks import RANK_HEADS, rank_lines
from vflens.experiments.scoreboard.tuned import age, is_apart
from vflens.experiments.scoreboard.verdicts import ERRORS
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep import render
from vflens.numerics.measures.intervals import spread
from vflens.types import Document
from vflens.words import counted

_TITLE = "Scoreboard: every result"
_FIRST = r" \(first: \d+\)"  # each seed names another row
_SAME = ("data", "federation", "defense", "seed", "attack", "estimates", "measure", "target")


def explored(rows: Rows, *, data: str, command: str) -> str:
    """The page of ``rows``, all of them in it: to find, filter, sort and draw. It opens on the defences of
    the first section, and on the ranks.
    """
    found = [row for row in rows if row.get("blind") is not None]
    families = {name: FAMILIES[estimated(name)] for name in {row["attack"] for row in found}}
    scored = [_row(row, families[row["attack"]]) for row in found]
    first = {name: scored[0][name] for name in ("data", "federation", "defense")}
    opening = {"x": "attack", "facet": "estimates", "colour": "scored_set", "only": first}
    lead = (
        f"{counted(len(scored), 'result')}. The relative error is the error of an attack over that of the "
        "best blind guess: 0 is exact, 1 no better than blind. The error of a share, AUC or R² is 1 less it. "
        f"{age(rows)}"
    )
    every = boards([row for row in rows if not is_apart(row)], ScoreboardGrid())
    every = [board for board in every if board.found[UNDEFENDED]]
    prices = [{defense: board.cost(defense) for defense in board.found} for board in every]
    plots = [leaks(*both) for both in zip(every, prices, strict=True) if len(both[1]) > 1]
    ranks = [
        TextTable(f"Attacks by rank: {threat}", RANK_HEADS, lines) for threat, lines in rank_lines(every)
    ]
    hidden = [verdicts(*both) for both in zip(every, prices, strict=True)]
    drawing = Drawing(scored, plots, lead, tables=[*ranks, *hidden])
    given: Document = {"data": data, "command": command, "opening": opening, "ahead": len(ranks)}
    return render(_TITLE, drawing, [*reasons(rows)], **given)


def leaks(board: Board, prices: dict[str, Cost]) -> Plot:
    """A named mark for each defence and each kind of thing that attacks estimate: the least relative error of
    an attack over what the defence costs.
    """
    marks = [_marks(board, prices, family) for family in _families(board)]
    drawn = [{**of, "marker": {"color": style(i)["color"]}} for i, of in enumerate(marks)]
    axes = scales(f"price: {prices[UNDEFENDED].measure} lost", "leak: least error / blind error")
    return plot(f"{board.title}: defences by leak and price", drawn, 520, **axes, **blind_level(1))


def _marks(board: Board, prices: dict[str, Cost], family: str) -> Document:
    found = [(d, of, price) for d, price in prices.items() if (of := board.leak(d, family)) and price.lost]
    names = [escape(defense) for defense, *_ in found]
    x, y = [price.mean for *_, price in found], [of.mean for _, of, _ in found]
    words = [escape(f"{d}: {board.words(d, family)}; {price}") for d, _, price in found]
    look = {"text": names, "textposition": "top center", "textfont": {"size": 9}, "hovertext": words}
    return scatter("markers+text", FAMILIES[family], x, y, **look)


def verdicts(board: Board, prices: dict[str, Cost]) -> TextTable:
    """What each defence hides, costs and leaves, in words."""
    families = _families(board)
    heads = ["defence", "gain", "cost", *(FAMILIES[family] for family in families)]
    lines = [
        [
            d,
            spread(price.gained),
            "–" if d == UNDEFENDED else str(price),
            *(board.words(d, f) for f in families),
        ]
        for d, price in prices.items()
    ]
    return TextTable(f"{board.title}: what defences hide", heads, lines)


def _families(board: Board) -> list[str]:
    return [family for family in FAMILIES if board.of_family(UNDEFENDED, family)]


def reasons(rows: Rows) -> Iterator[str]:
    """Why there is no result: of defences that are refused, and of attacks where nothing defends."""
    without = [r for r in rows if r.get("reason") and (r["refused"] or r["defense"] == UNDEFENDED)]
    found = (
        f"{FEDERATIONS[r['federation']].title}, {r['data']}, "
        f"{r['defense'] if r['refused'] else r['attack']}: {re.sub(_FIRST, '', r['reason'])}"
        for r in without
    )
    yield from dict.fromkeys(found)


def _row(row: Document, estimates: str) -> Document:
    """A result under the names that the explorer has for a sweep's."""
    measure, figure, blind = row["measure"], row["figure"], row["blind"]
    is_error = measure in ERRORS
    error, of_guess = (figure, blind) if is_error else (1 - figure, 1 - blind)
    named = {"federation": FEDERATIONS[row["federation"]].title, "estimates": estimates}
    return {
        **{name: named.get(name, row.get(name)) for name in _SAME},
        "scored_set": row["rows"],
        "relative": error / of_guess if of_guess else None,
        measure.lower() if is_error else "share": figure,
        "blind": blind,
    }
