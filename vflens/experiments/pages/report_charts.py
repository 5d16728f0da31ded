"""The report's figures: plotly's JSON as plain dictionaries; the page's script adds the theme.

Party names and labels are untrusted: plotly's pseudo-HTML in them is escaped here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import TypeAlias

from vflens.experiments.outcome.words import number, rows_of
from vflens.experiments.pages.plots import (
    GREY,
    SHARES,
    axis,
    bar,
    by_column,
    dashes,
    heat_map,
    plot,
    scatter,
    style,
    tiles,
)
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.results import ColumnError, Result
from vflens.experiments.results.titles import labels, ranking, targets
from vflens.numerics.measures.intervals import least_first
from vflens.storage.metrics import Name
from vflens.types import Document
from vflens.words import counted

Placed: TypeAlias = tuple[ColumnError, tuple[int, int]]  # an error, and row and column of its pixel


def percent(relative: float) -> str:
    """A share of the blind error as "12 %"; "–" if it is infinite or undefined."""
    return f"{100 * relative:.0f} %" if math.isfinite(relative) else "–"


def _clipped(relative: float) -> float | None:
    return min(relative, 1.0) if math.isfinite(relative) else None


def heat_cells(runs: Sequence[RecordedRun]) -> dict[tuple[str, str], dict[str, list[Result | None]]]:
    """(target, scored set) → attack → its result in each run, the most successful attack first."""
    cells: dict[tuple[str, str], dict[str, list[Result | None]]] = {}
    for i, run in enumerate(runs):
        for r in run.results:
            rows = cells.setdefault((r.target, r.scored_set), {})
            rows.setdefault(r.attack, [None] * len(runs))[i] = r
    return {place: dict(sorted(rows.items(), key=_least_relative)) for place, rows in cells.items()}


def _least_relative(row: tuple[str, list[Result | None]]) -> float:
    return min(least_first(r.relative) for r in row[1] if r)


def heat_maps(runs: Sequence[RecordedRun]) -> Iterator[Document]:
    """One attack × run map per target and scored set, the most successful attack on top."""
    for (target, scored_set), rows in heat_cells(runs).items():
        cells = list(rows.values())
        yield heat_map(
            f"{target}, {rows_of(scored_set)}",
            labels(runs),
            list(rows),
            [[_clipped(c.relative) if c else None for c in row] for row in cells],
            text=[[percent(c.relative) if c else "" for c in row] for row in cells],
            hover=[[_hover(c) if c else "" for c in row] for row in cells],
            shares=True,
        )


def _hover(r: Result) -> str:
    interval = f" ± {number(r.half_width)} (95 %)" if r.half_width is not None else ""
    unusable = f"<br>{100 * r.unusable:.1f} % of rows flagged unusable" if r.unusable else ""
    return (
        f"MSE {number(r.mse)}{interval} on {counted(r.rows, 'row', ',')}<br>"
        f"best blind guess {number(r.blind)} ({escape(r.blind_guess)}){unusable}"
    )


def _best_columns(
    runs: Sequence[RecordedRun], target: str
) -> Iterator[tuple[RecordedRun, Result, tuple[ColumnError, ...]]]:
    """For each run the most successful attack on ``target`` with scored columns."""
    for run in runs:
        for r in (r for r in run.results if r.target == target):
            if columns := run.columns(r):
                yield run, r, columns
                break


def features(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Iterator[Document]:
    """Per target: error by column of each run's best attack as bars, the blind errors as marks."""
    for target in targets(runs):
        best = list(_best_columns(runs, target))
        if not best:
            continue
        bars = [
            bar(
                escape(f"{r.attack}, {names[run.name]}"),
                [escape(c.column) for c in columns],
                [c.mse for c in columns],
                style(i)["color"],
                customdata=[f"{number(c.mse)}, blind {number(c.blind)}" for c in columns],
                hovertemplate="%{x}: %{customdata}",
            )
            for i, (run, r, columns) in enumerate(best)
        ]
        blind = dashes(bars[0]["x"], [c.blind for c in best[0][2]], hoverinfo="skip")
        yield plot(target, [*bars, blind], 360, **by_column("MSE"))


def pixel_maps(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Iterator[Document]:
    """The same errors as an image per run, if the columns are pixels: of colours their mean."""
    for target in targets(runs):
        for run, r, columns in _best_columns(runs, target):
            places = {c.name: c.pixel for c in run.columns_of(target)}
            found = [(c, place[:2]) for c in columns if (place := places.get(c.column))]
            if len(found) == len(columns):
                yield _pixel_map(f"{r.attack} on {target}, {names[run.name]}", _by_place(found))


def _by_place(placed: Sequence[Placed]) -> list[Placed]:
    """One mean error for all channels of a pixel."""
    together: dict[tuple[int, int], list[ColumnError]] = {}
    for error, place in placed:
        together.setdefault(place, []).append(error)
    return [
        (ColumnError(e[0].column, fmean(c.mse for c in e), fmean(c.blind for c in e)), place)
        for place, e in together.items()
    ]


def _pixel_map(title: str, shown: Sequence[Placed]) -> Document:
    finite = [(c, place) for c, place in shown if math.isfinite(c.relative)]
    words = [f"{escape(c.column)}: {number(c.mse)}, blind {number(c.blind)}" for c, _ in finite]
    rows, columns = [row for _, (row, _) in finite], [column for _, (_, column) in finite]
    drawn = tiles(columns, rows, [SHARES(c.relative) for c, _ in finite], words)
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    return plot(title, [drawn], 260, xaxis=axis, yaxis={**axis, "autorange": "reversed", "scaleanchor": "x"})


def convergence(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Iterator[Document]:
    """Per run, target and scored set with several milestones: error by number of rows."""
    ranks = ranking(runs)
    for run in runs:
        for (target, scored_set), group in by_place(run.milestones).items():
            if len({r.rows for r in group}) > 1:
                yield milestones(f"{names[run.name]} · {target}, {rows_of(scored_set)}", group, ranks)


def by_place(results: Sequence[Result]) -> dict[tuple[str, str], list[Result]]:
    """(target, scored set) → its ``results``, those of fewer rows first."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in sorted(results, key=lambda r: r.rows):
        groups.setdefault((r.target, r.scored_set), []).append(r)
    return groups


def milestones(title: str, group: Sequence[Result], ranks: Mapping[str, int]) -> Document:
    """Errors of one target's rows by their number, in the order of ``group``, with intervals and the blind
    error; ``ranks`` gives an attack its style.
    """
    attacks = sorted({r.attack for r in group}, key=lambda a: ranks[a])
    lines = [_line(a, [r for r in group if r.attack == a], style(ranks[a])) for a in attacks]
    blind = {r.rows: r.blind for r in group}
    dashed = {"color": GREY, "dash": "dash", "width": 2}
    lines.append(scatter("lines", "best blind guess", list(blind), list(blind.values()), line=dashed))
    # An unbounded attack can be a hundred times worse than blind: its line may leave the frame.
    top = max(2 * max(blind.values()), 1.2 * min(r.mse for r in group))
    rows = axis("rows", type="log", tickvals=list(blind))
    return plot(title, lines, 340, xaxis=rows, yaxis=axis("MSE", range=[0, top]))


def _line(attack: str, points: Sequence[Result], style: Mapping[str, str]) -> Document:
    bars = {"type": "data", "array": [r.half_width or 0 for r in points], "thickness": 1}
    x, y = [r.rows for r in points], [r.mse for r in points]
    return scatter("lines+markers", escape(attack), x, y, error_y=bars, line=style)


def loss(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Iterator[Document]:
    """The training loss (nats) by epoch, a line per run."""
    lines = [
        scatter(
            "lines",
            escape(names[run.name]),
            [m.step for m in losses],
            [m.value if math.isfinite(m.value) else None for m in losses],
            line=style(i),
        )
        for i, run in enumerate(runs)
        if (losses := list(run.metrics(Name.TRAIN_LOSS)))
    ]
    if lines:
        axes = {"xaxis": axis("epoch"), "yaxis": axis("training loss, nats")}
        yield plot("training loss", lines, 300, **axes)
