"""The results of runs as tables for a terminal: no word is broken, wide ones come in several parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table

from vflens.experiments.outcome.words import number, rows_of
from vflens.experiments.results.titles import labels
from vflens.experiments.results.verdict import result_table

if TYPE_CHECKING:  # its reader loads Arrow
    from vflens.experiments.results.record import RecordedRun

_BORDERS = 3  # characters that a column needs besides its cells


def result_tables(runs: Sequence[RecordedRun], width: int) -> Iterator[Table]:
    """Attack × run for each target, then the attacks on labels; ``width`` characters to a line."""
    (_, _, attack, *titles), rows = result_table(runs)
    for (target, scored), group in groupby(rows, key=lambda row: row[:2]):
        lines = [[_broken(cell) for cell in row[2:]] for row in group]
        yield from fitting_tables(f"{target}, {rows_of(scored)}", [attack, *titles], lines, width)
    yield from _labels(runs, width)


def _broken(cell: str) -> str:
    """A cell, its parts on lines of their own."""
    return cell.replace("; ", "\n").replace(" guess = ", " guess\n= ").replace(" (the ", "\n(the ")


def _labels(runs: Sequence[RecordedRun], width: int) -> Iterator[Table]:
    """Shares of right labels."""
    for run, title in zip(runs, labels(runs), strict=True):
        rows = [
            [r.attack, r.target, r.kind, f"{r.rows:,}", number(r.accuracy), number(r.blind)]
            for r in run.labels
        ]
        head = ["attack", "target", "rows of", "rows", "right labels", "most frequent class"]
        if rows:
            yield from fitting_tables(f"labels: {title}", head, rows, width)


def fitting_tables(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[Table]:
    """One table, or several with the first column in each, of as many columns as fit."""
    sizes = [_size(column) for column in zip(head, *rows, strict=True)]
    start = 1
    while start < len(head):
        end, room = start + 1, width - 1 - sum(size + _BORDERS for size in (sizes[0], sizes[start]))
        while end < len(head) and (room := room - sizes[end] - _BORDERS) >= 0:
            end += 1
        shown = [0, *range(start, end)]
        yield _table(title, [head[j] for j in shown], [[row[j] for j in shown] for row in rows])
        start = end


def _size(column: Sequence[str]) -> int:
    """The width in which no line of a cell, and no word of its head, is broken."""
    head, *cells = column
    return max(map(cell_len, [*head.split(), *(line for cell in cells for line in cell.split("\n"))]))


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name, *cells in zip(head, *rows, strict=True):
        table.add_column(name, overflow="fold", max_width=_size([name, *cells]))
    for row in rows:
        table.add_row(*row)
    return table
