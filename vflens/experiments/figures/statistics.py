"""The data sets: mean and variance of each feature (RVG Fig. 6, VAR Fig. 2), covariances (VAR Fig. 6)."""

from collections.abc import Sequence

import numpy as np

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import RVG_SETS, Dealt, available
from vflens.experiments.pages import plots
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.theory.closed_forms import second_moment

VAR_SETS = ("bank", "adult", "satellite", "pendigits", "grid")


def means_and_variances(names: Sequence[str], options: FigureOptions) -> Drawing:
    """Mean and variance per feature, over all rows."""
    here, notes = available(names, options.seed)
    rows: Rows = [
        {"dataset": d.name, "feature": j, "column": name, "mean": float(mean), "variance": float(variance)}
        for d in here
        for j, (name, mean, variance) in enumerate(
            zip(d.columns, d.x.mean(axis=0), d.x.var(axis=0), strict=True)
        )
    ]
    drawn = [_bars(d) for d in here]
    lead = (
        "Mean and variance of every feature, scaled to [0, 1], over all rows. "
        "A blind guess of ½ is good for features with means near one half and small variances."
    )
    return Drawing(rows, drawn, lead, notes)


def _bars(d: Dealt) -> plots.Plot:
    means, variances = d.x.mean(axis=0), d.x.var(axis=0)
    title = f"{d.name}: mean of means {means.mean():.3f}, error of ½ {((d.x - 0.5) ** 2).mean():.4f}"
    return plots.bars(
        title, d.columns, "of the range", {"mean": means.tolist(), "variance": variances.tolist()}
    )


def covariances(options: FigureOptions) -> Drawing:
    """Heat maps of K_μ."""
    here, notes = available(VAR_SETS, options.seed)
    rows: Rows = []
    drawn = []
    for d in here:
        K = second_moment(d.x, d.x.mean(axis=0))
        rows += [
            {"dataset": d.name, "row": a, "column": b, "covariance": float(K[i, j])}
            for i, a in enumerate(d.columns)
            for j, b in enumerate(d.columns)
        ]
        share = np.sort(np.linalg.eigvalsh(K))[::-1] / np.trace(K)
        title = f"{d.name}: the largest eigenvalue holds {100 * share[0]:.0f} % of the variance"
        drawn.append(plots.heat_map(title, d.columns, d.columns, K.tolist(), height=460, symmetric=True))
    lead = "Covariances K_μ of the features, scaled to [0, 1], over all rows."
    return Drawing(rows, drawn, lead, notes)


PAGES = (
    Page(
        "rvg-fig6",
        "Mean and variance of each feature (RVG, Fig. 6)",
        lambda options: means_and_variances(RVG_SETS, options),
    ),
    Page(
        "var-fig2",
        "Mean and variance of each feature (VAR, Fig. 2)",
        lambda options: means_and_variances(VAR_SETS, options),
    ),
    Page("var-fig6", "Covariance matrices K_μ (VAR, Fig. 6)", covariances),
)
