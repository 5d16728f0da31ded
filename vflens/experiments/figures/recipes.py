"""The three recipes side by side: the effect of a data set's preparation on accuracy and errors."""

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import available, dealt, trained, windows
from vflens.experiments.figures._windows import averaged, averaged_over, named, predictions, window_errors
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import bars
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.types import Facts

RECIPES = ("clean", "paper", "authors")
_SETS = ("bank", "robot", "satellite")
_SIZES = (5, 10)
_ESTIMATORS = named("half", "ls", "clamped_ls", "half_star", "rcc2", "rcc1")


def side_by_side(options: FigureOptions) -> Drawing:
    """Every recipe of the data sets with all three."""
    here, absent = available(_SETS, options.seed)
    cells = [_cell(d.name, recipe, options) for d in here for recipe in RECIPES]
    rows = [row for part in options.pool.run(recipe_rows, cells) for row in part]
    found = averaged(rows, "dataset", "d", "recipe", "estimator")
    accuracy = {(r["dataset"], r["recipe"]): r["accuracy"] for r in rows}
    shown = [
        bars(
            f"{d.name}, d = {size}",
            [e.label for e in _ESTIMATORS],
            "MSE per feature",
            {
                f"{recipe}, accuracy {accuracy[d.name, recipe]:.3f}": [
                    found[d.name, size, recipe, e.label][0] for e in _ESTIMATORS
                ]
                for recipe in RECIPES
            },
        )
        for d in here
        for size in _SIZES
    ]
    lead = (
        "The same training (the authors' schedule, L2 1e-4), predictions and windows on columns that each "
        "recipe prepares; errors "
        f"are means over {averaged_over(options)}."
    )
    return Drawing(rows, shown, lead, absent)


def _cell(name: str, recipe: str, options: FigureOptions) -> Cell:
    place = {"dataset": name, "recipe": recipe}
    return Cell({**options.key, **place}, (place, options.seed, options.quick, predictions(options)))


def recipe_rows(place: Facts, seed: int, quick: bool, count: int) -> Rows:
    """Deal, train and attack: a row per size, window and estimator."""
    name, recipe = place["dataset"], place["recipe"]
    data, model = dealt(name, seed, recipe), trained(name, seed, quick, recipe=recipe)
    found = {**place, "accuracy": model.accuracy(data.x[data.predict_rows], data.labels[data.predict_rows])}
    x, rows = data.predictions(count, seed), []
    for size in _SIZES:
        columns = windows(x.shape[1], size, quick)
        rows += window_errors(
            {**found, "d": size, "after": False, "seed": seed}, model, x, columns, _ESTIMATORS
        )
    return rows


PAGES = (Page("recipes", "Three recipes side by side", side_by_side),)
