"""A reproduced figure: data in long form, the paper's printed numbers beside ours, a plot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from vflens.experiments.pages.drawing import Printed
from vflens.experiments.pages.plots import scatter
from vflens.types import Array, Document, Facts


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
    return {**scatter("lines", name, np.asarray(x).tolist(), np.asarray(y).tolist()), **more}
