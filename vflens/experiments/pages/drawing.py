"""What the page of a figure or of a sweep shows: rows of data, plots, tables, numbers of a paper, images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vflens.experiments.pages.plots import Plot
from vflens.types import Document


@dataclass(frozen=True)
class Printed:
    """A number of the paper, and ours; ``error`` is the standard error of ours or None."""

    what: str
    paper: float
    ours: float
    error: float | None = None


@dataclass(frozen=True)
class TextTable:
    """Rows of texts, each as long as ``heads``; the first is the row's name."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class ImageGrid:
    """Images as data URIs: one row per name, all of one length."""

    title: str
    rows: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Drawing:
    """``rows`` are the data, ``plots`` those of the page, ``lead`` explains the computation, ``notes`` its
    limits.

    ``printed`` are numbers of the paper beside ours, ``tables`` whole tables of them, ``grids`` images.
    """

    rows: list[Document]
    plots: Sequence[Plot]
    lead: str
    notes: Sequence[str] = ()
    printed: Sequence[Printed] = ()
    tables: Sequence[TextTable] = ()
    grids: Sequence[ImageGrid] = ()
