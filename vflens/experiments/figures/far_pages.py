"""FAR's figures as pages of ``vflens reproduce``.

The paper prints curves without numbers and omits several settings; ``notes`` names our choices.
"""

from collections.abc import Callable, Mapping

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures.far_curves import figure5, figure6, figure7
from vflens.experiments.figures.far_theory import figure1, figure2, figure3, figure4
from vflens.experiments.figures.figure import MakeFigure
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import plot

FIGURES: Mapping[str, MakeFigure] = {
    "far-fig1": figure1,
    "far-fig2": figure2,
    "far-fig3": figure3,
    "far-fig4": figure4,
    "far-fig5": figure5,
    "far-fig6": figure6,
    "far-fig7": figure7,
}


_SIMULATIONS, _QUICK = 100, 5
_HEIGHT = 420


def _drawn(make: MakeFigure) -> Callable[[FigureOptions], Drawing]:
    def draw(options: FigureOptions) -> Drawing:
        simulations = _QUICK if options.quick else _SIMULATIONS
        figure = make(simulations=simulations, seed=options.seed, on_step=options.pool.progress)
        rows = [
            dict(zip(figure.data, values, strict=True)) for values in zip(*figure.data.values(), strict=True)
        ]
        drawn = plot(figure.title, figure.plot["data"], _HEIGHT, **figure.plot["layout"])
        lead = f"{simulations} simulations where there is noise to draw."
        return Drawing(rows, [drawn], lead, figure.notes, printed=figure.printed)

    return draw


def _title(name: str, make: MakeFigure) -> str:
    first = " ".join((make.__doc__ or name).split("\n\n")[0].split()).rstrip(".")
    return f"{first} (FAR, Fig. {name.removeprefix('far-fig')})"


PAGES = tuple(Page(name, _title(name, make), _drawn(make)) for name, make in FIGURES.items())
