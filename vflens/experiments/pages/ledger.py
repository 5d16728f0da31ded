"""The ledger as a page, and as bars of bytes that the report shows too."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.pages.plots import COLOURS, Plot, axis, bar, plot
from vflens.experiments.results.ledger import Line, lines, notes, shown
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import labels
from vflens.types import Document


def write_ledger(runs: Sequence[RecordedRun], out: Path) -> Path:
    """Write the ledger of ``runs`` to ``out`` (or into it, if it is a folder), all or nothing.

    Raises:
        DataError, StorageError: a log is damaged, or ``out`` cannot be written.
    """
    ledgers = [
        {"title": f"{shown(run.name)}: {shown(title)}", **ledger(run)}
        for run, title in zip(runs, labels(runs), strict=True)
    ]
    template = templates().get_template("ledger.html.j2")
    drawn = any(found["flows"] for found in ledgers)
    file = out / "ledger.html" if out.is_dir() else out
    write_page(file, template.render(ledgers=ledgers, plotly=plotly() if drawn else ""))
    return file


def ledger(run: RecordedRun) -> Document:
    """``lines`` of the ledger of ``run``, ``notes``, and ``flows``, one for each phase of known bytes."""
    found = lines(run)
    phases = dict.fromkeys(line.crossing.phase for line in found)
    drawn = {phase: [x for x in found if x.crossing.phase == phase and x.crossing.nbytes] for phase in phases}
    flows = [_flow(phase, of) for phase, of in drawn.items() if of]
    return {"lines": found, "notes": list(notes(run, found)), "flows": flows}


def _flow(phase: str, lines: Sequence[Line]) -> Plot:
    """A bar for each sender and receiver, as long as its bytes, in colours of the kinds of message."""
    kinds = list(dict.fromkeys(line.crossing.point for line in lines))
    drawn = [
        bar(
            escape(shown(kind)),
            [line.crossing.nbytes for line in of],
            [_ends(line) for line in of],
            COLOURS[i % len(COLOURS)],
            orientation="h",
            customdata=[_hover(line) for line in of],
            hovertemplate="%{y}<br>%{customdata}<extra></extra>",
        )
        for i, kind in enumerate(kinds)
        if (of := [line for line in lines if line.crossing.point == kind])
    ]
    axes = {"xaxis": axis("bytes", tickformat="~s"), "yaxis": {"autorange": "reversed", "type": "category"}}
    height = 130 + 36 * len({_ends(line) for line in lines})
    return plot(f"phase {shown(phase)}", drawn, height, barmode="stack", **axes)


def _ends(line: Line) -> str:
    sender, receiver = (
        escape(shown(name) or "not recorded") for name in (line.crossing.sender, line.crossing.receiver)
    )
    return f"{sender} → {receiver}"


def _hover(line: Line) -> str:
    _, _, kind, messages, size, rows, defended = map(escape, line.cells())
    return f"{kind}: {messages} messages, {size}<br>rows: {rows}<br>defended by: {defended}"
