"""FAR's figures as pages of ``vflens reproduce``."""

from __future__ import annotations

from collections.abc import Callable

from vflens.experiments.figures import Drawing, Options, Page
from vflens.experiments.figures.far import FIGURES
from vflens.experiments.figures.figure import MakeFigure

_SIMULATIONS, _QUICK = 100, 5
_HEIGHT = 420


def _drawn(make: MakeFigure) -> Callable[[Options], Drawing]:
    def draw(options: Options) -> Drawing:
        simulations = _QUICK if options.quick else _SIMULATIONS
        figure = make(simulations=simulations, seed=options.seed, on_step=options.pool.progress)
        rows = [
            dict(zip(figure.data, values, strict=True)) for values in zip(*figure.data.values(), strict=True)
        ]
        layout = {"height": _HEIGHT, **figure.plot["layout"]}
        spec = {"data": figure.plot["data"], "layout": layout}
        plot = {"title": figure.title, "height": layout["height"], "spec": spec}
        lead = f"{simulations} simulations where there is noise to draw."
        return Drawing(rows, [plot], lead, figure.notes, figure.printed)

    return draw


def _title(name: str, make: MakeFigure) -> str:
    first = " ".join((make.__doc__ or name).split("\n\n")[0].split()).rstrip(".")
    return f"{first} (FAR, Fig. {name.removeprefix('far-fig')})"


PAGES = tuple(Page(name, _title(name, make), _drawn(make)) for name, make in FIGURES.items())
