"""Plots as plotly's JSON in dictionaries: lines with intervals, bars, heat maps, in one palette.

Names are untrusted: plotly's pseudo-HTML in them is escaped here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from vflens.types import Document

Plot: TypeAlias = Document

# Okabe and Ito's palette without black and yellow: distinct for the colour-blind, visible on light and dark.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#808080"
_DASHES = ("solid", "dot", "dashdot")
_SCALE = [[0, "#eef2f6"], [0.25, "#fdd0a2"], [0.5, "#fd8d3c"], [0.75, "#d94801"], [1, "#7f2704"]]


@dataclass(frozen=True)
class Series:
    """One line: ``y`` over ``x``, with optional 95 % half widths and names of points (shown on hover)."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    half_width: Sequence[float] | None = None
    names: Sequence[str] | None = None


def plot(title: str, data: list[Document], height: int, **layout: Any) -> Plot:
    """Argument of the pages' macro ``plot``."""
    return {"title": title, "height": height, "spec": {"data": data, "layout": {"height": height, **layout}}}


def scatter(mode: str, name: str, x: Sequence[Any], y: Sequence[Any], **more: Any) -> Document:
    """Marks or a line; ``more`` goes to plotly."""
    return {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y, **more}


def axis(title: str, **more: Any) -> Document:
    """A titled axis; ``more`` goes to plotly."""
    return {"title": {"text": title}, **more}


def scales(x: str, y: str, *, x_log: bool = False, y_log: bool = False) -> Document:
    """Two titled axes, each linear or logarithmic."""
    return {
        "xaxis": axis(x, type="log" if x_log else "linear"),
        "yaxis": axis(y, type="log" if y_log else "linear"),
    }


def by_column(y: str) -> Document:
    """The axes of values from 0 on by category."""
    return {"yaxis": axis(y, rangemode="tozero"), "xaxis": {"type": "category", "showgrid": False}}


def dashes(x: Sequence[str], y: Sequence[float], **more: Any) -> Document:
    """The best blind guess as a grey dash over each bar."""
    marker = {"symbol": "line-ew-open", "size": 12, "color": GREY, "line": {"width": 2}}
    return scatter("markers", "best blind guess", x, y, **more, marker=marker)


def style(i: int) -> dict[str, str]:
    """The i-th line style: colours first, then the same colours dotted and dash-dotted."""
    return {"color": COLOURS[i % len(COLOURS)], "dash": _DASHES[i // len(COLOURS) % len(_DASHES)]}


def lines(
    title: str,
    x: str,
    y: str,
    series: Sequence[Series],
    *,
    log_x: bool = False,
    log_y: bool = False,
    height: int = 380,
    order: Sequence[str] = (),
    blind: float | None = None,
) -> Plot:
    """Lines over a common axis; ``order`` gives a name the same style in every plot.

    ``blind`` is the ``y`` of a blind guess.
    """
    names = list(dict.fromkeys([*order, *(s.name for s in series)]))
    drawn: list[Document] = []
    for s in series:
        look = {"marker": {"size": 5}, "line": style(names.index(s.name))}
        line = scatter("lines+markers", escape(s.name), list(s.x), list(s.y), **look)
        if s.half_width is not None:
            line["error_y"] = {"type": "data", "array": list(s.half_width), "thickness": 1}
        if s.names is not None:
            line["text"] = [escape(n) for n in s.names]
        drawn.append(line)
    axes = scales(x, y, x_log=log_x, y_log=log_y)
    if not log_y:
        axes["yaxis"]["rangemode"] = "tozero"
    return plot(title, drawn, height, **axes, **({} if blind is None else _blind_level(blind)))


def _blind_level(y: float) -> Document:
    """A dashed line across the plot, named."""
    across = {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    line = {"type": "line", **across, "line": {"dash": "dash", "width": 1, "color": GREY}}
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": y, "yanchor": "bottom"}
    return {"shapes": [line], "annotations": [{"text": "blind guess", **place, "showarrow": False}]}


def bar(name: str, x: Sequence[str], y: Sequence[float | None], colour: str, **more: Any) -> Document:
    """One colour of bars; ``more`` goes to plotly."""
    return {"type": "bar", "name": name, "x": x, "y": y, **more, "marker": {"color": colour}}


def bars(title: str, x: Sequence[str], y: str, series: Mapping[str, Sequence[float | None]]) -> Plot:
    """Groups of bars, one colour per name; None has no bar."""
    labels = [escape(v) for v in x]
    data = [
        bar(escape(name), labels, list(values), style(i)["color"])
        for i, (name, values) in enumerate(series.items())
    ]
    return plot(title, data, 340, **by_column(y))


def heat_map(
    title: str,
    columns: Sequence[str],
    rows: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    hover: Sequence[Sequence[str]] | None = None,
    text: Sequence[Sequence[str]] | None = None,
    height: int | None = None,
    symmetric: bool = False,
    shares: bool = False,
) -> Plot:
    """``values`` by row and column; dark means large; ``symmetric`` centres a two-sided scale on 0.

    ``shares`` of a blind error: from dark at 0 to light at 1 and above, as in reports.
    """
    heat: Document = {
        "type": "heatmap",
        "x": [escape(c) for c in columns],
        "y": [escape(r) for r in rows],
        "z": [list(row) for row in values],
        "colorscale": "RdBu" if symmetric else _SCALE,
        "colorbar": {"thickness": 12, "outlinewidth": 0},
    }
    if symmetric:
        heat |= {"zmid": 0, "reversescale": True}
    if shares:
        heat |= {"zmin": 0, "zmax": 1, "reversescale": True}
    if text is not None:
        heat |= {"text": text, "texttemplate": "%{text}", "xgap": 2, "ygap": 2}
    if hover is not None:
        heat |= {"customdata": hover, "hovertemplate": "%{customdata}<extra></extra>"}
    axes = {
        "yaxis": {"autorange": "reversed", "type": "category"},
        "xaxis": {"side": "top", "type": "category"},
    }
    return plot(title, [heat], height or 90 + 34 * len(rows), **axes)
