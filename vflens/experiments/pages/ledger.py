"""The ledger as a page, and as Sankey diagrams that the report shows too."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.pages.plots import COLOURS, Plot, plot
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
    drawn = any(found["sankeys"] for found in ledgers)
    file = out / "ledger.html" if out.is_dir() else out
    write_page(file, template.render(ledgers=ledgers, plotly=plotly() if drawn else ""))
    return file


def ledger(run: RecordedRun) -> Document:
    """``lines`` of the ledger of ``run``, ``notes``, and ``sankeys``, one for each phase of known bytes."""
    found = lines(run)
    phases = dict.fromkeys(line.crossing.phase for line in found)
    drawn = {phase: [x for x in found if x.crossing.phase == phase and x.crossing.nbytes] for phase in phases}
    sankeys = [_sankey(phase, of) for phase, of in drawn.items() if of]
    return {"lines": found, "notes": list(notes(run, found)), "sankeys": sankeys}


def _sankey(phase: str, found: Sequence[Line]) -> Plot:
    """From senders to receivers; a band is as wide as its bytes, its colour is the kind of message."""
    ends = [(("from", line.crossing.sender), ("to", line.crossing.receiver)) for line in found]
    nodes = list(dict.fromkeys(node for pair in ends for node in pair))
    kinds = list(dict.fromkeys(line.crossing.point for line in found))
    names = [escape(shown(name) or "not recorded") for _, name in nodes]
    links = {
        "source": [nodes.index(sender) for sender, _ in ends],
        "target": [nodes.index(receiver) for _, receiver in ends],
        "value": [line.crossing.nbytes for line in found],
        "color": [f"{COLOURS[kinds.index(x.crossing.point) % len(COLOURS)]}99" for x in found],
        "customdata": [_hover(line) for line in found],
        "hovertemplate": "%{source.label} → %{target.label}<br>%{customdata}<extra></extra>",
    }
    node = {"label": names, "color": "#808080", "pad": 14, "thickness": 12, "hoverinfo": "skip"}
    flow: Document = {"type": "sankey", "node": node, "link": links, "textfont": {"size": 13}}
    return plot(f"phase {shown(phase)}", [flow], 90 + 36 * len(found))


def _hover(line: Line) -> str:
    _, _, kind, messages, size, rows, defended = map(escape, line.cells())
    return f"{kind}: {messages} messages, {size}<br>rows: {rows}<br>defended by: {defended}"
