"""Published figures beside ours and those of blind guesses, from what our own commands recorded."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scoreboard_lines import table

from vflens.experiments.scoreboard.board import Board
from vflens.experiments.scoreboard.grid import UNDEFENDED
from vflens.numerics.measures.intervals import spread
from vflens.types import Facts
from vflens.words import counted

HEAD = """\
## Beside published figures

What papers print, and what our own commands measured. Ours, the best blind guess and a uniform one are taken
from the tables that `vflens reproduce NAME --json` wrote (`docs/reproduced`), and from the results of the
scoreboard. Sizes and settings are those of the command, which [what reproduces](reproduces.md) states: most
are reduced, so a difference is no contradiction by itself. "–": the record has no such figure.
"""
_MSE, _WRONG, _FOUND = "MSE", "wrong labels", "cells found"
VAR = "VAR (Varasteh, arXiv:2302.05545), §V, text on Figure 4"


class ParityLine(NamedTuple):
    """A line of a recorded table: in the record of ``command`` the ``row`` of the table whose title begins
    with ``title``, and which columns have the figures.
    """

    what: str
    measure: str
    command: str
    title: str
    row: str
    published: str
    ours: str
    blind: str
    uniform: str = ""

    def line(self, records: Mapping[str, Facts]) -> list[str] | None:
        """What the page shows; None where nothing was recorded."""
        tables = records.get(self.command, {}).get("tables", ())
        found = next((t for t in tables if t["title"].startswith(self.title)), None)
        cells = next((r for r in found["rows"] if r[0] == self.row), None) if found else None
        if found is None or cells is None:
            return None
        at = dict(zip(found["heads"], cells, strict=True))
        figures = (self.published, self.ours, self.blind, self.uniform)
        return [self.what, self.measure, *(at.get(name, "–") for name in figures), f"`{self.command}`"]


def _adult(batch: int) -> ParityLine:
    what = f"TabLeak (Vero et al., ICML 2023): Adult, batches of {batch}"
    columns = ("published", "ours", "other rows", "uniform")
    return ParityLine(
        what, _FOUND, "tableak", "Share of cells found", f"adult, {counted(batch, 'row')}", *columns
    )


def _table3(method: str) -> ParityLine:
    columns = ("BMI, paper", "BMI, ours", "blind")
    what = f"FedAdOb Table III: BMI, {method}, digits beside LeNet-MNIST"
    return ParityLine(what, _MSE, "fao-table3-quick", "cnn on digits", method, *columns)


def _reduced(what: str, measure: str, command: str, row: str, attack: str) -> ParityLine:
    columns = (f"{attack}, paper", "as printed, ours", "blind alone")
    return ParityLine(what, measure, command, "cnn on digits, FedAdOb, beside", row, *columns)


PARITY: Sequence[ParityLine] = (
    *(_adult(batch) for batch in (16, 32, 128)),
    *(_table3(method) for method in ("SplitFed", "FedAdOb")),
    *(_reduced(f"FedAdOb Table V: CAFE, N = {n}", _MSE, "fao-table5-quick", n, "CAFE") for n in ("1", "10")),
    *(
        _reduced(f"FedAdOb Table VI: PMC, σ² = {variance}", _WRONG, "fao-table6-quick", variance, "PMC")
        for variance in ("0", "10")
    ),
)


def parity_tables(every: Sequence[Board], records: Mapping[str, Facts]) -> list[str]:
    """The section; nothing where nothing is recorded."""
    lines = [line for line in (published.line(records) for published in PARITY) if line is not None]
    lines += [line for line in map(_half, every) if line is not None]
    heads = ["setting", "measure", "published", "ours", "blind", "uniform", "from"]
    return [HEAD, table(heads, lines)] if lines else []


def _half(board: Board) -> list[str] | None:
    """The guess of one half, which VAR prints for bank, beside what the results have of it."""
    found = board.found[UNDEFENDED]
    if (board.data, board.federation) != ("bank", "vertical-lr") or not {
        "half",
        "random_guess",
    } <= found.keys():
        return None
    ours, uniform = found["half"], found["random_guess"].figure
    figures = ("0.17", spread(ours.figure), spread(ours.blind), spread(uniform))
    return [f"{VAR}: half, all columns of bank; here half of them", _MSE, *figures, "these results"]
