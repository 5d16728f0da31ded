"""The papers' figures: ``vflens reproduce NAME`` makes one as data (parquet) and as one self-contained page.

**To add a figure**, put it into a module of this folder and list it in that module's ``PAGES``, a tuple of
:class:`Page`::

    PAGES = (Page("rvg-fig6", "Mean and variance of each feature (RVG, Fig. 6)", means_and_variances),)

    def means_and_variances(options: Options) -> Drawing:
        rows = [{"feature": j, "mean": m} for …]         # the long table that becomes NAME.parquet
        shown = plots.lines("…", "feature", "mean", [plots.Series("bank", xs, ys)])
        return Drawing(rows, [shown], lead="What is plotted, how it was computed.", notes=["…"])

``options.quick`` asks for a coarse version in seconds, ``options.size`` is one of the page's ``sizes``, and
``options.seed`` decides all draws. Heavy work goes
through ``options.pool.run(work, cells)`` (:mod:`vflens.experiments.sweeps.pool`): ``work`` is a function of a
module, for pickling, and finished cells survive an interruption. Absent data sets are named in ``notes`` and
left out. Listing imports all modules: put slow imports inside functions.
"""

import importlib
import pkgutil
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from vflens.errors import ConfigError, DataError
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.sweeps.pool import Pool, write_rows
from vflens.names import did_you_mean
from vflens.types import Document

Size: TypeAlias = Literal["quick", "default", "full"]


@dataclass(frozen=True)
class FigureOptions:
    """Options of a figure; results depend on all but ``pool``.

    ``seeds``: so many of them, from ``seed`` on, on a page that has several; None: those of its size.
    ``model``: this architecture alone, on a page that has models; "": all that its size runs.
    ``epochs``: so many, on a page that takes them; None: those of its size.
    """

    pool: Pool
    size: Size = "default"
    seed: int = 0
    seeds: int | None = None
    model: str = ""
    epochs: int | None = None

    @property
    def quick(self) -> bool:
        """Whether the coarse version is asked for."""
        return self.size == "quick"

    @property
    def key(self) -> Document:
        """Entries of every cell's key besides the cell's own."""
        return {"size": self.size, "seed": self.seed}


@dataclass(frozen=True)
class Page:
    """``name`` is the argument of `vflens reproduce`, ``title`` the page's title.

    Pages of one ``cells`` share their finished cells, which then stay; the cells of others are removed with
    the page complete, but for one of fewer seeds than its size has. ``sizes`` are those that the page comes
    in, ``several``: it has several seeds, ``models``: and several models, ``epochs``: it takes a number of
    epochs.
    """

    name: str
    title: str
    make: Callable[[FigureOptions], Drawing] = field(compare=False)
    cells: str = ""
    sizes: Sequence[Size] = ("quick", "default")
    several: bool = False
    models: bool = False
    epochs: bool = False

    def kept(self, out: Path, size: Size, seed: int) -> Path:
        """Where its cells are kept, apart by size: a finished coarse page removes its own only."""
        return out / f".{self.cells or self.name}-{seed}{_suffix(size)}"


def figures() -> Mapping[str, Page]:
    """Every figure by name: rvg-fig4 before rvg-fig10."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found: list[Page] = [page for module in modules for page in getattr(module, "PAGES", ())]
    return {figure.name: figure for figure in sorted(found, key=_place)}


def _place(page: Page) -> list[tuple[str, int]]:
    """Sort key: its name, with numbers as numbers."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", page.name)]


def page(name: str, size: Size) -> Page:
    """The figure ``name``.

    Raises:
        ConfigError: no figure has this name, or it does not come in this size.
    """
    known = figures()
    if name not in known:
        near = did_you_mean(name, known)
        raise ConfigError(f"figure {name!r} is none of {', '.join(known)}: choose one of them{near}")
    if size not in known[name].sizes:
        raise ConfigError(f"figure {name!r} comes in no size {size!r}: leave --{size} out")
    return known[name]


def reproduce(name: str, options: FigureOptions, out: Path) -> Document:
    """Write ``out/NAME.parquet`` and ``out/NAME.html``, another size as ``NAME-SIZE``; return their facts.

    Raises:
        ConfigError: see :func:`page`; it has no several seeds or models; or another process makes the same
            one.
        DataError: all its data sets are absent.
        StorageError: ``out`` cannot be written.
    """
    figure = page(name, options.size)
    if options.seeds is not None and not figure.several:
        raise ConfigError(f"figure {name!r} has one seed, or its own: leave --seeds {options.seeds} out")
    if options.pool.only_finished and not figure.several:
        raise ConfigError(f"figure {name!r} has no page of a part: leave --finished out")
    if options.model and not figure.models:
        raise ConfigError(f"figure {name!r} has one model, or none: leave --model {options.model} out")
    if options.epochs and not figure.epochs:
        raise ConfigError(f"figure {name!r} has epochs of its own: leave --epochs {options.epochs} out")
    with options.pool.alone():
        return _reproduced(figure, options, out)


def _reproduced(figure: Page, options: FigureOptions, out: Path) -> Document:
    name, drawing = figure.name, figure.make(options)
    if not drawing.rows and options.pool.only_finished:
        raise DataError(
            f"figure {name!r} has no finished cell of seed {options.seed} in {options.pool.folder}: run it "
            "without --finished, or name the --out, --seed and size of a run that has begun"
        )
    if not drawing.rows:
        raise DataError(f"figure {name!r} has no data: {'; '.join(drawing.notes)}")
    stem = name + _suffix(options.size)  # the full figure, hours of work, stays
    data, html = out / f"{stem}.parquet", out / f"{stem}.html"
    write_rows(data, drawing.rows)
    title = figure.title + {"quick": ", coarse", "default": "", "full": ", the paper's size"}[options.size]
    title += ", but for its epochs" if options.epochs else ""
    write_page(html, render(title, drawing, data=data.name, command=_command(name, options, out)))
    if not (figure.cells or options.seeds or options.model or options.epochs or options.pool.only_finished):
        options.pool.forget()
    return {
        "figure": name,
        "title": title,
        "rows": len(drawing.rows),
        "lead": drawing.lead,
        "notes": list(drawing.notes),
        "tables": [asdict(table) for table in drawing.tables],
        "data": str(data),
        "page": str(html),
    }


def render(title: str, drawing: Drawing, *, data: str, command: str) -> str:
    """The page: title, lead, notes, plots, the command."""
    template = templates().get_template("figure.html.j2")
    return template.render(title=title, drawing=drawing, data=data, command=command, plotly=plotly())


def _command(name: str, options: FigureOptions, out: Path) -> str:
    flag = "" if options.size == "default" else f" --{options.size}"
    few = "" if options.seeds is None else f" --seeds {options.seeds}"
    few += f" --model {shlex.quote(options.model)}" if options.model else ""
    few += f" --epochs {options.epochs}" if options.epochs else ""
    few += " --finished" if options.pool.only_finished else ""
    return f"vflens reproduce {name} --seed {options.seed}{few}{flag} --out {shlex.quote(str(out))}"


def _suffix(size: Size) -> str:
    return "" if size == "default" else f"-{size}"
