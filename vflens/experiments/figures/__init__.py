"""The papers' figures: ``vflens reproduce NAME`` makes one as data (parquet) and as one self-contained page.

**To add a figure**, put it into a module of this folder and list it in that module's ``PAGES``, a tuple of
:class:`Page`::

    PAGES = (Page("rvg-fig6", "Mean and variance of each feature (RVG, Fig. 6)", means_and_variances),)

    def means_and_variances(options: Options) -> Drawing:
        rows = [{"feature": j, "mean": m} for …]         # the long table that becomes NAME.parquet
        shown = plots.lines("…", "feature", "mean", [plots.Series("bank", xs, ys)])
        return Drawing(rows, [shown], lead="What is plotted, how it was computed.", notes=["…"])

``options.quick`` asks for a coarse version in seconds, ``options.seed`` decides all draws. Heavy work goes
through ``options.pool.run(work, cells)`` (:mod:`vflens.experiments.sweeps.pool`): ``work`` is a function of a
module, for pickling, and finished cells survive an interruption. Absent data sets are named in ``notes`` and
left out. Listing imports all modules: put slow imports inside functions.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vflens.errors import ConfigError, DataError
from vflens.experiments.figures.figure import Printed
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.pages.plots import Plot
from vflens.experiments.sweeps.pool import Pool, Rows, write_rows
from vflens.types import Document


@dataclass(frozen=True)
class Options:
    """Options of a figure; results depend on ``quick`` and ``seed`` only."""

    pool: Pool
    quick: bool = False
    seed: int = 0

    @property
    def key(self) -> Document:
        """Entries of every cell's key besides the cell's own."""
        return {"quick": self.quick, "seed": self.seed}


@dataclass(frozen=True)
class Drawing:
    """``rows`` are the data, ``plots`` those of the page, ``lead`` explains the computation, ``notes`` its
    limits.

    ``printed`` are numbers of the paper beside ours.
    """

    rows: Rows
    plots: Sequence[Plot]
    lead: str
    notes: Sequence[str] = ()
    printed: Sequence[Printed] = ()


@dataclass(frozen=True)
class Page:
    """``name`` is the argument of `vflens reproduce`, ``title`` the page's title."""

    name: str
    title: str
    make: Callable[[Options], Drawing] = field(compare=False)


def figures() -> Mapping[str, Page]:
    """Every figure by name: rvg-fig4 before rvg-fig10."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found: list[Page] = [page for module in modules for page in getattr(module, "PAGES", ())]
    return {figure.name: figure for figure in sorted(found, key=_place)}


def _place(page: Page) -> list[tuple[str, int]]:
    """Sort key: its name, with numbers as numbers."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", page.name)]


def reproduce(name: str, options: Options, out: Path) -> Document:
    """Write ``out/NAME.parquet`` and ``out/NAME.html``, the coarse version as ``NAME-quick``; return their
    facts.

    Raises:
        ConfigError: no figure has this name.
        DataError: all its data sets are absent.
        StorageError: ``out`` cannot be written.
    """
    known = figures()
    if name not in known:
        raise ConfigError(f"figure {name!r} is none of {', '.join(known)}: choose one of them")
    figure = known[name]
    drawing = figure.make(options)
    if not drawing.rows:
        raise DataError(f"figure {name!r} has no data: {'; '.join(drawing.notes)}")
    stem = f"{name}-quick" if options.quick else name  # the full figure, hours of work, stays
    data, page = out / f"{stem}.parquet", out / f"{stem}.html"
    write_rows(data, drawing.rows)
    title = f"{figure.title}, coarse" if options.quick else figure.title
    write_page(page, render(title, drawing, data=data.name, command=_command(name, options)))
    options.pool.forget()
    return {
        "figure": name,
        "title": title,
        "rows": len(drawing.rows),
        "notes": list(drawing.notes),
        "data": str(data),
        "page": str(page),
    }


def render(title: str, drawing: Drawing, *, data: str, command: str) -> str:
    """The page: title, lead, notes, plots, the command."""
    page = templates().get_template("figure.html.j2")
    return page.render(title=title, drawing=drawing, data=data, command=command, plotly=plotly())


def _command(name: str, options: Options) -> str:
    return f"vflens reproduce {name} --seed {options.seed}{' --quick' if options.quick else ''}"
