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
_SCALE = ("#eef2f6", "#fdd0a2", "#fd8d3c", "#d94801", "#7f2704")
_TWO_SIDED = ("#053061", "#4393c3", "#f7f7f7", "#d6604d", "#67001f")
_DARK = 0.4  # shares below are told in white
_MOST_NAMES = 40  # on an axis


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
    return plot(title, drawn, height, **axes, **({} if blind is None else blind_level(blind)))


def blind_level(y: float) -> Document:
    """A dashed line across the plot, named."""
    across = {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    line = {"type": "line", **across, "line": {"dash": "dash", "width": 1, "color": GREY}}
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": y, "yanchor": "bottom"}
    return {"shapes": [line], "annotations": [{"text": "blind guess", **place, "showarrow": False}]}


def bar(name: str, x: Sequence[Any], y: Sequence[Any], colour: str, **more: Any) -> Document:
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
    """``values`` by row and column, None for no tile; dark means large; ``symmetric`` centres a two-sided
    scale on 0.

    ``shares`` of a blind error: from dark at 0 to light at 1 and above. ``hover`` has plotly's pseudo-HTML,
    ``text`` is that of shares.
    """
    found = [(i, j, v) for i, row in enumerate(values) for j, v in enumerate(row) if v is not None]
    words = [
        f"<b>{escape(rows[i])}</b> · {escape(columns[j])}<br>{hover[i][j] if hover else f'{v:.4g}'}"
        for i, j, v in found
    ]
    shade = _Shades.of([v for *_, v in found], symmetric=symmetric, shares=shares)
    colours = [shade(v) for *_, v in found]
    drawn = tiles([j for _, j, _ in found], [i for i, *_ in found], colours, words)
    if text is not None:
        drawn |= {"text": [text[i][j] for i, j, _ in found], "textposition": "inside", "textangle": 0}
        drawn["insidetextfont"] = {"color": ["#ffffff" if v < _DARK else "#1b2430" for *_, v in found]}
        drawn |= {"insidetextanchor": "middle", "constraintext": "none"}
    axes = {
        "yaxis": _named_places(rows, [len(rows) - 0.5, -0.5]),
        "xaxis": {"side": "top", **_named_places(columns, [-0.5, len(columns) - 0.5])},
    }
    return plot(title, [drawn, shade.legend()], height or 90 + 34 * len(rows), **axes)


@dataclass(frozen=True)
class _Shades:
    """Colours of values: ``stops`` at equal distances from ``low`` to ``high``, and the colours of what is
    beyond.
    """

    low: float
    high: float
    stops: Sequence[str]
    bar: Document

    @classmethod
    def of(cls, values: Sequence[float], *, symmetric: bool, shares: bool) -> "_Shades":
        """The scale of :func:`heat_map`."""
        if shares:
            return SHARES
        low, high = min(values, default=0.0), max(values, default=1.0)
        if symmetric:
            most = max(abs(low), abs(high))
            return cls(-most, most, _TWO_SIDED, {})
        return cls(low, high, _SCALE, {})

    def __call__(self, value: float) -> str:
        """The colour of ``value``, mixed from its two neighbours."""
        wide = self.high - self.low
        place = min(max((value - self.low) / wide if wide else 0.0, 0.0), 1.0) * (len(self.stops) - 1)
        first = min(int(place), len(self.stops) - 2)
        ends = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in self.stops[first : first + 2]]
        mixed = (round(a + (place - first) * (b - a)) for a, b in zip(*ends, strict=True))
        return "#" + "".join(f"{part:02x}" for part in mixed)

    def legend(self) -> Document:
        """A mark that is nowhere, with the scale beside the plot."""
        scale = [[i / (len(self.stops) - 1), colour] for i, colour in enumerate(self.stops)]
        bar = {**self.bar, "thickness": 12, "outlinewidth": 0}
        colours = {"color": [self.low], "cmin": self.low, "cmax": self.high, "colorscale": scale}
        marker = {**colours, "showscale": True, "colorbar": bar}
        return scatter("markers", "scale", [None], [None], marker=marker, showlegend=False, hoverinfo="skip")


#: Shares of a blind error: from dark at 0 to light at 1.
SHARES = _Shades(0, 1, _SCALE[::-1], {"title": {"text": "of blind error"}, "tickformat": ".0%"})


def tiles(x: Sequence[int], y: Sequence[int], colours: Sequence[str], words: Sequence[str]) -> Document:
    """Squares around (``x``, ``y``): bars, for our plotly has no heat maps; ``words`` are shown on hover."""
    return {
        "type": "bar",
        "x": x,
        "base": [place - 0.48 for place in y],
        "y": [0.96] * len(y),
        "width": 0.98,
        "marker": {"color": colours},
        "showlegend": False,
        "customdata": words,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _named_places(names: Sequence[str], limits: Sequence[float]) -> Document:
    """An axis on which each name has the place of its number; of many names some are left out."""
    marked = range(0, len(names), 1 + len(names) // _MOST_NAMES)
    ticks = {"tickvals": list(marked), "ticktext": [escape(names[i]) for i in marked]}
    return {**ticks, "range": limits, "showgrid": False, "zeroline": False}
