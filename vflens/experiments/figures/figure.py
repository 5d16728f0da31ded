"""A reproduced figure: data in long form, the paper's printed numbers beside ours, a plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from vflens.types import Array, Document, Facts


@dataclass(frozen=True)
class Printed:
    """A number of the paper, and ours; ``error`` is the standard error of ours or None."""

    what: str
    paper: float
    ours: float
    error: float | None = None


@dataclass(frozen=True)
class Table:
    """Rows of texts, each as long as ``heads``; the first is the row's name."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Grid:
    """Images as data URIs: one row per name, all of one length."""

    title: str
    rows: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """``data``: columns of equal length by name; ``plot``: plotly's data and layout as plain dictionaries."""

    title: str
    data: Mapping[str, list[Any]]
    plot: Facts
    printed: tuple[Printed, ...] = ()
    notes: tuple[str, ...] = field(default=())


class MakeFigure(Protocol):
    """Makes a figure from so many simulations; calls ``on_step(done, total)``."""

    def __call__(
        self, *, simulations: int = 100, seed: int = 0, on_step: Callable[[int, int], None] = ...
    ) -> Figure:
        """The figure; bit for bit the same for one seed."""


def silent(done: int, total: int) -> None:
    """Ignore progress."""


def line(name: str, x: Array | list[float], y: Array | list[float], **more: Any) -> Document:
    """A curve; ``more`` goes to plotly."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": np.asarray(x).tolist(),
        "y": np.asarray(y).tolist(),
        **more,
    }


def axes(x: str, y: str, *, x_log: bool = False, y_log: bool = False) -> Document:
    """A layout with two titled axes, each linear or logarithmic."""
    return {
        "xaxis": {"title": {"text": x}, "type": "log" if x_log else "linear"},
        "yaxis": {"title": {"text": y}, "type": "log" if y_log else "linear"},
    }
