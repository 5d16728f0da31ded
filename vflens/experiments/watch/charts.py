"""Errors at each milestone, beside the blind error and what theory says of them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from vflens.experiments.outcome.words import rows_of
from vflens.experiments.pages.plots import Plot, scatter, style
from vflens.experiments.pages.report_charts import by_place, milestones
from vflens.experiments.results import theory
from vflens.experiments.results.ledger import shown
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import ranking
from vflens.types import Document

_BAND = "33"  # opacity of a band's colour, in hexadecimal


def errors(run: RecordedRun) -> Iterator[Plot]:
    """A plot for each target and scored set, from the first milestone on."""
    ranks, stated = ranking([run]), [c for c in run.theory_milestones if not c.excuse]
    for (target, scored_set), group in by_place(run.milestones).items():
        plot = milestones(f"{shown(target)}, {shown(rows_of(scored_set))}", group, ranks)
        here = [c for c in stated if (c.target, c.scored_set) == (target, scored_set)]
        plot["spec"]["data"] += _bands(here, ranks)
        for line in plot["spec"]["data"]:
            line["name"] = shown(line.get("name", ""))  # escaped: a cut opens no tag
        yield plot


def _bands(stated: Sequence[theory.Comparison], ranks: Mapping[str, int]) -> list[Document]:
    """The closed form of each attack that a statement covers, and its bounds as a band: equal ones once."""
    drawn: list[Document] = []
    bands: dict[tuple[tuple[float | None, ...], ...], Document] = {}
    for attack in dict.fromkeys(c.attack for c in stated):
        points = sorted((c for c in stated if c.attack == attack), key=lambda c: c.scored)
        colour, x = style(ranks.get(attack, 0))["color"], [c.scored for c in points]
        lower, upper = (
            tuple(map(_drawn, of)) for of in zip(*((c.lower, c.upper) for c in points), strict=True)
        )
        bands.setdefault((lower, upper), {"x": x, "line": {"width": 1, "color": colour, "dash": "dot"}})
        if any(math.isfinite(c.closed) for c in points):
            name = f"{escape(attack)}, {escape(points[-1].statement)}"
            marker = {"symbol": "x-thin-open", "size": 9, "color": colour}
            drawn.append(scatter("markers", name, x, [_drawn(c.closed) for c in points], marker=marker))
    for (lower, upper), shared in bands.items():
        line = {"type": "scatter", **shared, "mode": "lines", "showlegend": False, "hoverinfo": "skip"}
        fill = {"fill": "tonexty", "fillcolor": shared["line"]["color"] + _BAND} if any(lower) else {}
        drawn += [{**line, "y": lower}, {**line, "y": upper, **fill}]
    return drawn


def _drawn(value: float) -> float | None:
    return value if math.isfinite(value) else None
