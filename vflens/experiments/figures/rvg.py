"""RVG's attacks over window sizes: Fig. 4 (estimators), Fig. 5 (Theorem 2), Fig. 14 (GIA's start)."""

from collections.abc import Sequence

import numpy as np

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import RVG_SETS, Dealt, available, sizes, trained, windows
from vflens.experiments.figures._windows import (
    GIA_ROWS,
    Estimator,
    averaged,
    averaged_over,
    named,
    predictions,
    size_curves,
    theory_notes,
    window_cells,
    window_errors,
    window_system,
)
from vflens.experiments.figures.central import Model
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import Series, lines
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.numerics.linear_system import nearest_solution
from vflens.numerics.theory.closed_forms import (
    bounds_before_training,
    nearest_solution_mse,
    second_moment,
    weak_lower_bound,
)
from vflens.types import Array, Facts
from vflens.words import counted

ESTIMATORS = named(
    "zero", "random_guess", "half", "ls", "clamped_ls", "half_star", "cls", "rcc1", "rcc2", "gia"
)
STARTS = tuple(Estimator(f"gia from {s}", "gia", {"start": s}, GIA_ROWS) for s in ("zero", "half", "random"))
_GIA = f"GIA: {GIA_ROWS} rows a window."


def all_estimators(options: FigureOptions, names: Sequence[str] = RVG_SETS) -> Drawing:
    """Fig. 4."""
    lead = f"Ten estimators against the share of passive features, means over {averaged_over(options)}."
    notes = [_GIA, "CLS starts at the clamped least-squares solution: its minimiser is not unique."]
    return over_sizes(options, names, ESTIMATORS, lead, notes)


def gia_starts(options: FigureOptions) -> Drawing:
    """Fig. 14."""
    lead = (
        "Gradient inversion from three starts, beside half* and RCC2: minimisers agree in objective, not in "
        "place. "
        f"Means over {averaged_over(options)}."
    )
    return over_sizes(options, RVG_SETS, (*STARTS, *named("half", "half_star", "rcc2")), lead, [_GIA])


def over_sizes(
    options: FigureOptions,
    names: Sequence[str],
    estimators: Sequence[Estimator],
    lead: str,
    notes: Sequence[str],
) -> Drawing:
    """MSE against window size on each data set."""
    here, absent = available(names, options.seed)
    cells = [
        cell
        for d in here
        for cell in window_cells(d, trained(d.name, options.seed, options.quick), options, estimators)
    ]
    rows = [row for part in options.pool.run(window_errors, cells) for row in part]
    order = [e.label for e in estimators]
    shown = [size_curves(where(rows, dataset=d.name), _title(d, options), order) for d in here]
    unusable = [
        f"{d.name}: {name} did not converge on {100 * share:.1f} % of rows"
        for d in here
        for name in order
        if (share := _unusable(rows, d.name, name)) > 0.001
    ]
    return Drawing(rows, shown, lead, [*theory_notes(rows), *notes, *unusable, *absent])


def _unusable(rows: Rows, dataset: str, estimator: str) -> float:
    """Share of the rows of ``dataset`` that ``estimator`` could not solve."""
    found = [r["unusable"] for r in rows if (r["dataset"], r["estimator"]) == (dataset, estimator)]
    return float(np.mean(found))


def _title(d: Dealt, options: FigureOptions) -> str:
    model = trained(d.name, options.seed, options.quick)
    accuracy = model.accuracy(d.x[d.predict_rows], d.labels[d.predict_rows])
    size = f"{counted(d.x.shape[1], 'feature')}, {counted(d.classes, 'class')}"
    return f"{d.name}: {size}, accuracy {accuracy:.3f}"


# -- Fig. 5 --------------------------------------------------------------------------------------------

_CURVES = (
    "ls, measured",
    "ls, closed form",
    "ls, lower",
    "ls, upper",
    "half_star, measured",
    "half_star, closed form",
    "half_star, lower",
    "half_star, upper",
    "any centre, this model",
    "any centre, any model",
)


def theorem_two(options: FigureOptions) -> Drawing:
    """Fig. 5: measurement, closed form and bounds, with moments from the whole data."""
    here, absent = available(RVG_SETS, options.seed)
    cells = [cell for d in here for cell in _theory_cells(d, options)]
    rows = [row for part in options.pool.run(theory_rows, cells) for row in part]
    shown = []
    for d in here:
        found = averaged(where(rows, dataset=d.name), "curve", "share")
        series = [
            Series(
                name,
                [share for curve, share in found if curve == name],
                [mean for (curve, _), (mean, _) in found.items() if curve == name],
            )
            for name in _CURVES
        ]
        shown.append(
            lines(
                _title(d, options), "passive share of the features", "MSE per feature", series, order=_CURVES
            )
        )
    lead = (
        "Theorem 2 for unclipped least squares and half*: closed form from the moments of all rows, "
        f"bounds that hold for any model, and measurement, means over {averaged_over(options)}. "
        "The bounds cover these two estimators only."
    )
    return Drawing(rows, shown, lead, absent)


def _theory_cells(d: Dealt, options: FigureOptions) -> list[Cell]:
    model = trained(d.name, options.seed, options.quick)
    x, width = d.predictions(predictions(options), options.seed), d.x.shape[1]
    moments = d.x.mean(axis=0), second_moment(d.x, 0.0)
    cells = []
    for size in sizes(width, options.quick):
        place = {"dataset": d.name, "d": size, "share": size / width}
        arguments = (place, model, x, moments, windows(width, size, options.quick))
        cells.append(Cell({**options.key, **place}, arguments))
    return cells


def theory_rows(place: Facts, model: Model, x: Array, moments: tuple[Array, Array], columns: Array) -> Rows:
    """A row per window and curve of Fig. 5."""
    mean, K0 = moments
    rows: Rows = []
    for w, window in enumerate(columns):
        mu, K = mean[window], K0[np.ix_(window, window)]
        system = window_system(model, x, window)
        found = _bounds(system.A, mu, K, len(model.bias) - 1)
        for name, center in (("ls", 0.0), ("half_star", 0.5)):
            estimate = nearest_solution(system.A, system.b, np.full(len(window), center))
            found[f"{name}, measured"] = float(((estimate - x[:, window]) ** 2).mean())
        rows += [{**place, "window": w, "curve": curve, "mse": value} for curve, value in found.items()]
    return rows


def _bounds(A: Array, mu: Array, K0: Array, equations: int) -> dict[str, float]:
    K_mean = K0 - np.outer(mu, mu)
    found = {
        "any centre, this model": nearest_solution_mse(A, K_mean),
        "any centre, any model": weak_lower_bound(K_mean, equations),
    }
    for name, center in (("ls", 0.0), ("half_star", 0.5)):
        K = K_mean + np.outer(mu - center, mu - center)
        limits = bounds_before_training(K, equations)
        found |= {
            f"{name}, closed form": nearest_solution_mse(A, K),
            f"{name}, lower": limits.lower,
            f"{name}, upper": limits.upper,
        }
    return found


PAGES = (
    Page("rvg-fig4", "Every estimator against the share of passive features (RVG, Fig. 4)", all_estimators),
    Page("rvg-fig5", "Theorem 2 beside measurement (RVG, Fig. 5)", theorem_two),
    Page("rvg-fig14", "Where gradient inversion starts (RVG, Fig. 14)", gia_starts),
)
