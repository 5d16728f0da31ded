"""Errors at each milestone, beside the blind error and what theory says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from vflens.experiments.pages.plots import Plot, style
from vflens.experiments.pages.report_charts import milestones
from vflens.experiments.results import theory
from vflens.experiments.results.folders import Run
from vflens.experiments.results.ledger import shown
from vflens.experiments.results.results import Result, ranking, results
from vflens.experiments.results.titles import rows_of
from vflens.types import Document

_BAND = "33"  # opacity of a band's colour, in hexadecimal


def errors(run: Run) -> Iterator[Plot]:
    """A plot for each target and scored set, from the first milestone on."""
    ranks, stated = ranking([run]), [c for c in theory.milestones(run) if not c.excuse]
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in sorted(results(run), key=lambda r: r.rows):
        groups.setdefault((r.target, r.scored_set), []).append(r)
    for (target, scored_set), group in groups.items():
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
            closed = {"x": x, "y": [_drawn(c.closed) for c in points], "mode": "markers"}
            marker = {"symbol": "x-thin-open", "size": 9, "color": colour}
            drawn.append(
                {**closed, "name": f"{escape(attack)}, {escape(points[-1].statement)}", "marker": marker}
            )
    for (lower, upper), shared in bands.items():
        line = {**shared, "mode": "lines", "showlegend": False, "hoverinfo": "skip"}
        fill = {"fill": "tonexty", "fillcolor": shared["line"]["color"] + _BAND} if any(lower) else {}
        drawn += [{**line, "y": lower}, {**line, "y": upper, **fill}]
    return [{"type": "scatter", **d} for d in drawn]


def _drawn(value: float) -> float | None:
    return value if math.isfinite(value) else None
