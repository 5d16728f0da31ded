"""The report's figures: plotly's JSON as plain dictionaries; the page's script adds the theme.

Party names and labels are untrusted: plotly's pseudo-HTML in them is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import TypeAlias

from vflens.experiments.pages.plots import plot, style
from vflens.experiments.results.folders import Run
from vflens.experiments.results.results import (
    ColumnError,
    Result,
    column_errors,
    final,
    ranking,
    results,
    targets,
)
from vflens.experiments.results.titles import labels, rows_of
from vflens.experiments.results.verdict import figure
from vflens.types import Document

Placed: TypeAlias = tuple[ColumnError, tuple[int, int]]  # an error, and row and column of its pixel
_GREY = "#808080"
_SCALE = [[0, "#7f2704"], [0.25, "#d94801"], [0.5, "#fd8d3c"], [0.75, "#fdd0a2"], [1, "#eef2f6"]]


def percent(relative: float) -> str:
    """A share of the blind error as "12 %"; "–" if it is infinite."""
    return f"{100 * relative:.0f} %" if math.isfinite(relative) else "–"


def _clipped(relative: float) -> float | None:
    return min(relative, 1.0) if math.isfinite(relative) else None


def heat_cells(runs: Sequence[Run]) -> dict[tuple[str, str], dict[str, list[Result | None]]]:
    """(target, scored set) → attack → its result in each run, the most successful attack first."""
    cells: dict[tuple[str, str], dict[str, list[Result | None]]] = {}
    for i, run in enumerate(runs):
        for r in final(run):
            rows = cells.setdefault((r.target, r.scored_set), {})
            rows.setdefault(r.attack, [None] * len(runs))[i] = r
    return {place: dict(sorted(rows.items(), key=_least_relative)) for place, rows in cells.items()}


def _least_relative(row: tuple[str, list[Result | None]]) -> float:
    return min(r.relative for r in row[1] if r)


def heat_maps(runs: Sequence[Run]) -> Iterator[Document]:
    """One attack × run map per target and scored set, the most successful attack on top."""
    columns = [escape(label) for label in labels(runs)]
    for (target, scored_set), rows in heat_cells(runs).items():
        attacks, cells = list(rows), list(rows.values())
        heat = {
            "type": "heatmap",
            "x": columns,
            "y": [escape(a) for a in attacks],
            "z": [[_clipped(c.relative) if c else None for c in row] for row in cells],
            "text": [[percent(c.relative) if c else "" for c in row] for row in cells],
            "customdata": [[_hover(c) if c else "not scored" for c in row] for row in cells],
            "texttemplate": "%{text}",
            "hovertemplate": "<b>%{y}</b> · %{x}<br>%{customdata}<extra></extra>",
            **_scaled(),
        }
        layout = {"yaxis": {"autorange": "reversed"}, "xaxis": {"side": "top"}}
        yield plot(f"{target}, {rows_of(scored_set)}", [heat], 90 + 34 * len(attacks), **layout)


def _scaled() -> Document:
    title = {"text": "of blind error", "font": {"size": 12}}
    bar = {"title": title, "tickformat": ".0%", "thickness": 12, "outlinewidth": 0}
    return {"zmin": 0, "zmax": 1, "colorscale": _SCALE, "colorbar": bar, "xgap": 2, "ygap": 2}


def _hover(r: Result) -> str:
    interval = f" ± {figure(r.half_width)} (95 %)" if r.half_width is not None else ""
    unusable = f"<br>{100 * r.unusable:.1f} % of rows flagged unusable" if r.unusable else ""
    return (
        f"MSE {figure(r.mse)}{interval} on {r.rows:,} rows<br>"
        f"best blind guess {figure(r.blind)} ({escape(r.blind_guess)}){unusable}"
    )


def _best_columns(runs: Sequence[Run], target: str) -> Iterator[tuple[Run, Result, tuple[ColumnError, ...]]]:
    """For each run the most successful attack on ``target`` with scored columns."""
    for run in runs:
        for r in (r for r in final(run) if r.target == target):
            if columns := column_errors(run, r):
                yield run, r, columns
                break


def features(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[Document]:
    """Per target: error by column of each run's best attack as bars, the blind errors as marks."""
    for target in targets(runs):
        best = list(_best_columns(runs, target))
        if not best:
            continue
        bars: list[Document] = [
            {
                "type": "bar",
                "name": escape(f"{r.attack}, {names[run.name]}"),
                "x": [escape(c.column) for c in columns],
                "y": [c.mse for c in columns],
                "customdata": [f"{figure(c.mse)}, blind {figure(c.blind)}" for c in columns],
                "hovertemplate": "%{x}: %{customdata}",
                "marker": {"color": style(i)["color"]},
            }
            for i, (run, r, columns) in enumerate(best)
        ]
        blind = {
            "type": "scatter",
            "mode": "markers",
            "name": "best blind guess",
            "x": bars[0]["x"],
            "y": [c.blind for c in best[0][2]],
            "hoverinfo": "skip",
            "marker": {"symbol": "line-ew-open", "size": 12, "color": _GREY, "line": {"width": 2}},
        }
        axes = {
            "yaxis": {"title": {"text": "MSE"}, "rangemode": "tozero"},
            "xaxis": {"type": "category", "showgrid": False},
        }
        yield plot(target, [*bars, blind], 360, **axes)


def pixel_maps(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[Document]:
    """The same errors as an image per run, if the columns are pixels: of colours their mean."""
    for target in targets(runs):
        for run, r, columns in _best_columns(runs, target):
            places = {c.name: c.pixel for c in run.infos()[target].columns} if target in run.infos() else {}
            found = [(c, place[:2]) for c in columns if (place := places.get(c.column))]
            if len(found) == len(columns):
                yield _pixel_map(f"{r.attack} on {target}, {names[run.name]}", _by_place(found))


def _by_place(found: Sequence[Placed]) -> list[Placed]:
    """One mean error for all channels of a pixel."""
    together: dict[tuple[int, int], list[ColumnError]] = {}
    for error, place in found:
        together.setdefault(place, []).append(error)
    return [
        (ColumnError(e[0].column, fmean(c.mse for c in e), fmean(c.blind for c in e)), place)
        for place, e in together.items()
    ]


def _pixel_map(title: str, shown: Sequence[Placed]) -> Document:
    heat = {
        "type": "heatmap",
        "x": [place[1] for _, place in shown],
        "y": [place[0] for _, place in shown],
        "z": [_clipped(c.relative) for c, _ in shown],
        "customdata": [f"{escape(c.column)}: {figure(c.mse)}, blind {figure(c.blind)}" for c, _ in shown],
        "hovertemplate": "%{customdata}<extra></extra>",
        **_scaled(),
        "showscale": False,
    }
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    return plot(title, [heat], 260, xaxis=axis, yaxis={**axis, "autorange": "reversed", "scaleanchor": "x"})


def convergence(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[Document]:
    """Per run, target and scored set with several milestones: error by number of rows."""
    ranks = ranking(runs)
    for run in runs:
        groups: dict[tuple[str, str], list[Result]] = {}
        for r in sorted(results(run), key=lambda r: r.rows):
            groups.setdefault((r.target, r.scored_set), []).append(r)
        for (target, scored_set), group in groups.items():
            if len({r.rows for r in group}) > 1:
                yield milestones(f"{names[run.name]} · {target}, {rows_of(scored_set)}", group, ranks)


def milestones(title: str, group: Sequence[Result], ranks: Mapping[str, int]) -> Document:
    """Errors of one target's rows by their number, in the order of ``group``, with intervals and the blind
    error; ``ranks`` gives an attack its style.
    """
    attacks = sorted({r.attack for r in group}, key=lambda a: ranks[a])
    lines = [_line(a, [r for r in group if r.attack == a], style(ranks[a])) for a in attacks]
    blind = {r.rows: r.blind for r in group}
    dashed = {"color": _GREY, "dash": "dash", "width": 2}
    lines.append({"type": "scatter", "mode": "lines", "name": "best blind guess", "line": dashed})
    lines[-1] |= {"x": list(blind), "y": list(blind.values())}
    # An unbounded attack can be a hundred times worse than blind: its line may leave the frame.
    top = max(2 * max(blind.values()), 1.2 * min(r.mse for r in group))
    rows = {"type": "log", "title": {"text": "rows"}, "tickvals": list(blind)}
    return plot(title, lines, 340, xaxis=rows, yaxis={"title": {"text": "MSE"}, "range": [0, top]})


def _line(attack: str, points: Sequence[Result], style: Mapping[str, str]) -> Document:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(attack),
        "x": [r.rows for r in points],
        "y": [r.mse for r in points],
        "error_y": {"type": "data", "array": [r.half_width or 0 for r in points], "thickness": 1},
        "line": style,
    }


def loss(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[Document]:
    """The training loss (nats) by epoch, a line per run."""
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": escape(names[run.name]),
            "x": [m.step for m in losses],
            "y": [m.value if math.isfinite(m.value) else None for m in losses],
            "line": style(i),
        }
        for i, run in enumerate(runs)
        if (losses := list(run.metrics("train_loss")))
    ]
    if lines:
        axes = {"xaxis": {"title": {"text": "epoch"}}, "yaxis": {"title": {"text": "training loss, nats"}}}
        yield plot("training loss", lines, 300, **axes)
