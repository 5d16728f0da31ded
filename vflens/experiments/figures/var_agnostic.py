"""VAR's agnostic attack: AM and RAM against half* with exact scores and half (Figs. 3, 4, 5, 7), AM's
accuracy (8).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import Dealt, available, sizes, trained, windows
from vflens.experiments.figures._windows import averaged, averaged_over, predictions
from vflens.experiments.figures.central import Model
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import Series, lines
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.numerics.linear_system import first_differences, nearest_solution
from vflens.numerics.theory.agnostic import ReceivedScores, fit_classifier, padded
from vflens.types import Array, Facts
from vflens.words import counted

FIVE = ("bank", "adult", "satellite", "pendigits", "grid")
_L2 = 1e-4
#: Full batches of L-BFGS over all training rows for each window would take hours on the larger sets.
_FITTED_ROWS, _QUICK_ROWS = 8000, 2000


def attack_curves(names: Sequence[str], received: Sequence[int]) -> Any:
    """MSE against d for AM, RAM with each number of ``received`` scores, half* with exact scores, half."""

    def draw(options: FigureOptions) -> Drawing:
        rows, here, absent = _computed(names, received, options)
        order = ["am", *(f"ram {n}" for n in received), "half_star, exact scores", "half"]
        shown = []
        for d in here:
            for part in ("predict", "train"):
                found = averaged(where(rows, dataset=d.name, part=part), "attack", "d")
                series = [
                    Series(
                        a, [p[1] for p in found if p[0] == a], [v[0] for p, v in found.items() if p[0] == a]
                    )
                    for a in order
                ]
                shown.append(
                    lines(
                        f"{d.name}, {part} rows", "passive features d", "MSE per feature", series, order=order
                    )
                )
        lead = (
            "AM replaces scores that it never received by those of its own classifier (own columns and "
            "labels of training rows); RAM refines it by some received ones. LS below k passive features, "
            f"half* from there on, clipped to [0, 1]. Means over {averaged_over(options)}."
        )
        return Drawing(rows, shown, lead, [*_notes(here, options), *absent])

    return draw


def accuracies(options: FigureOptions) -> Drawing:
    """Accuracy of AM's classifier against its number of features, and the federation's."""
    rows, here, absent = _computed(FIVE, (), options)
    rows = where(rows, attack="am", part="predict")
    found = averaged(rows, "dataset", "active", value="accuracy")
    series, notes = [], []
    for d in here:
        points = sorted((p[1], v[0]) for p, v in found.items() if p[0] == d.name)
        series.append(Series(d.name, [p[0] for p in points], [p[1] for p in points]))
        together = trained(d.name, options.seed, options.quick).accuracy(
            d.x[d.predict_rows], d.labels[d.predict_rows]
        )
        notes.append(f"{d.name}: the federation reaches {together:.4f}")
    shown = lines("prediction rows", "features of the active party", "accuracy of AM's classifier", series)
    lead = (
        "The nearer AM's own classifier is to the federation's, the better its scores replace the true ones."
    )
    return Drawing(rows, [shown], lead, [*notes, *_notes(here, options), *absent])


def _notes(here: Sequence[Dealt], options: FigureOptions) -> list[str]:
    limit = _QUICK_ROWS if options.quick else _FITTED_ROWS
    return [
        f"{d.name}: classifiers fitted on {limit:,} of {counted(len(d.train_rows), 'training row', ',')}"
        for d in here
        if len(d.train_rows) > limit
    ]


def _computed(
    names: Sequence[str], received: Sequence[int], options: FigureOptions
) -> tuple[Rows, list[Dealt], list[str]]:
    here, absent = available(names, options.seed)
    cells = [cell for d in here for cell in _cells(d, received, options)]
    return [row for part in options.pool.run(agnostic_rows, cells) for row in part], here, absent


def _cells(d: Dealt, received: Sequence[int], options: FigureOptions) -> list[Cell]:
    width = d.x.shape[1]
    model = trained(d.name, options.seed, options.quick)
    rng = np.random.default_rng((options.seed, 4))
    rows = rng.permutation(d.train_rows)[: _QUICK_ROWS if options.quick else _FITTED_ROWS]
    count = predictions(options)
    samples = {"predict": rng.permutation(d.predict_rows)[:count], "train": rows[:count]}
    cells = []
    for size in sizes(width - 1, options.quick):
        place = {"dataset": d.name, "d": size, "active": width - size}
        key = {**options.key, **place, "received": list(received)}
        columns = windows(width, size, options.quick)
        cells.append(Cell(key, (place, (d, model), (rows, samples), columns, tuple(received))))
    return cells


def agnostic_rows(
    place: Facts,
    source: tuple[Dealt, Model],
    drawn: tuple[Array, Mapping[str, Array]],
    columns: Array,
    received: Sequence[int],
) -> Rows:
    """A row per window, attack and part of the data.

    Args:
        place: part of every row.
        source: the data and the federation's model.
        drawn: the rows to fit classifiers on, and the attacked rows of each part.
        columns: windows (w, d).
        received: numbers of RAM's scores.
    """
    (data, model), (fitted, samples) = source, drawn
    rows: Rows = []
    for w, window in enumerate(columns):
        own = np.setdiff1d(np.arange(data.x.shape[1]), window)
        x, labels = data.x[np.ix_(fitted, own)], data.labels[fitted]
        thetas = {"am": fit_classifier(x, labels, data.classes, _L2)}
        seen = samples["predict"]
        for n in received:
            scores = model.log_scores(data.x[seen[:n]])
            refining = ReceivedScores(data.x[np.ix_(seen[:n], own)], scores, 1.0)
            thetas[f"ram {n}"] = fit_classifier(x, labels, data.classes, _L2, refining, start=thetas["am"])
        for part, sample in samples.items():
            answers = _answers(source, thetas, window, own, sample)
            truth = data.x[np.ix_(sample, window)]
            tested = padded(data.x[np.ix_(data.predict_rows, own)])
            for attack, values in answers.items():
                row = {**place, "window": w, "part": part, "attack": attack}
                row["mse"] = float(((values - truth) ** 2).mean())
                if attack in thetas:
                    found = (tested @ thetas[attack].T).argmax(axis=1)
                    row["accuracy"] = float((found == data.labels[data.predict_rows]).mean())
                rows.append(row)
    return rows


def _answers(
    source: tuple[Dealt, Model], thetas: Mapping[str, Array], window: Array, own: Array, sample: Array
) -> dict[str, Array]:
    data, model = source
    J = first_differences(data.classes)
    A, x = J @ model.weight[:, window], data.x[sample]
    known = x[:, own] @ model.weight[:, own].T + model.bias
    half = np.full(len(window), 0.5)
    center = half if len(window) >= data.classes else 0 * half
    answers = {
        name: nearest_solution(A, (padded(x[:, own]) @ theta.T - known) @ J.T, center).clip(0, 1)
        for name, theta in thetas.items()
    }
    exact = (model.log_scores(x) - known) @ J.T
    answers["half_star, exact scores"] = nearest_solution(A, exact, half).clip(0, 1)
    answers["half"] = np.full((len(x), len(window)), 0.5)
    return answers


PAGES = (
    Page("var-fig3", "The agnostic attack on Bank (VAR, Fig. 3)", attack_curves(["bank"], ())),
    Page("var-fig4", "AM and RAM on four data sets (VAR, Fig. 4)", attack_curves(FIVE[:4], (100,))),
    Page(
        "var-fig5", "RAM with 50 and 100 scores on Satellite (VAR, Fig. "
                    "5)", attack_curves(["satellite"], (50, 100))
    ),
    Page("var-fig7", "The agnostic attack on Grid (VAR, Fig. 7)", attack_curves(["grid"], ())),
    Page("var-fig8", "Accuracy of AM against the number of active features (VAR, Fig. 8)", accuracies),
)  # fmt: skip
