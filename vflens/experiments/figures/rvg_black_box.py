"""RVG's black box: one passive feature, the parameters withheld, more and more predictions (Fig. 7)."""

import numpy as np

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import available, trained
from vflens.experiments.figures._windows import averaged
from vflens.experiments.pages.drawing import Drawing, Printed
from vflens.experiments.pages.plots import Series, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.estimators.one_feature import Signs, reconstruct
from vflens.words import counted

_FEATURE = "emp.var.rate"
COUNTS, _INSTANCES = range(1, 101), 100
_PRINTED = {"|ω|": 0.98916, "|b₀|": 3.048751}
_CASES: dict[str, Signs] = {
    "signs of ω and b₀ known": "same",
    "population mean known": "unknown",
    "nothing known": "unknown",
}


def black_box(options: FigureOptions) -> Drawing:
    """Bank's ``emp.var.rate``: MSE against the number of predictions, over 100 draws of them."""
    here, absent = available(["bank"], options.seed)
    if not here:
        return Drawing([], [], "", absent)
    data, model = here[0], trained("bank", options.seed, options.quick)
    j = data.columns.index(_FEATURE)
    slope, shift = float(model.weight[1, j] - model.weight[0, j]), float(model.bias[1] - model.bias[0])
    x = data.x[data.predict_rows, j]
    rng, rows = np.random.default_rng((options.seed, 7)), list[dict[str, object]]()
    for instance in range(10 if options.quick else _INSTANCES):
        drawn = rng.choice(x, max(COUNTS), replace=False)
        rows += instance_rows(instance, drawn, slope * drawn + shift, float(x.mean()))
    lead = (
        f"v = ω x + b₀ with ω = {slope:.4f} and b₀ = {shift:.4f} in this training; "
        f"{counted(len(np.unique(data.x[:, j])), 'value')} of "
        f"{_FEATURE} occur, two of them at the ends of [0, 1], so that few predictions suffice."
    )
    printed = [
        Printed(f"{name} (one seed and split)", paper, abs(ours))
        for (name, paper), ours in zip(_PRINTED.items(), (slope, shift), strict=True)
    ]
    return Drawing(rows, [_plot(rows)], lead, [], printed=printed)


def instance_rows(instance: int, x: np.ndarray, v: np.ndarray, mean: float) -> Rows:
    """A row per number of predictions and case, for one draw ``x`` (max(COUNTS),) and its values ``v`` of ωx
    + b₀.
    """
    rows: Rows = []
    for n in COUNTS:
        for case, signs in _CASES.items():
            found, guessed = reconstruct(v[:n], signs, mean if case == "population mean known" else None)
            error = float(((found - x[:n]) ** 2).mean())
            rows.append({"instance": instance, "n": n, "case": case, "mse": error, "half": guessed})
    return rows


def _plot(rows: Rows) -> dict[str, object]:
    found = averaged(rows, "case", "n")
    series = [
        Series(case, [p[1] for p in found if p[0] == case], [v[0] for p, v in found.items() if p[0] == case])
        for case in _CASES
    ]
    return lines(f"Bank, {_FEATURE}", "predictions N", "MSE", series)


PAGES = (Page("rvg-fig7", "The black box against the number of predictions (RVG, Fig. 7)", black_box),)
