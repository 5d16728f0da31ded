"""RVG's defences: x ↦ 1−x before and after (Figs. 8–11), its effect on scores (12), schemes (13)."""

from collections.abc import Callable

import numpy as np

from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import (
    RVG_SETS,
    Dealt,
    available,
    defended_training,
    epoch_rng,
    sizes,
    trained,
    windows,
)
from vflens.experiments.figures._windows import (
    averaged,
    averaged_over,
    named,
    predictions,
    theory_notes,
    window_cells,
    window_errors,
    window_system,
)
from vflens.experiments.figures.central import Model, train
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import Plot, Series, lines
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.numerics.linear_system import LinearSystem, first_differences, nearest_solution
from vflens.numerics.theory.closed_forms import nearest_solution_mse, second_moment
from vflens.numerics.theory.distortion_theory import logit_moment, noise_gain
from vflens.plugins.defense import Context
from vflens.registry import DEFENSES
from vflens.types import Array, Document, Exchange, Facts, Owner, Phase

ESTIMATORS = named("ls", "clamped_ls", "cls", "half_star", "rcc1", "rcc2")
_KL_ROWS = 20_000
_ALPHAS = {
    "scheme_1": np.logspace(-2, 3, 11),
    "scheme_2": np.logspace(-2, 3, 11),
    "scheme_3": np.linspace(0.1, 0.9, 9),
    "label_only": np.logspace(-6, -1, 6),
}
_STRENGTH = {"label_only": "epsilon"}


def before_and_after(name: str) -> Callable[[FigureOptions], Drawing]:
    """The estimators before and after the passive party trains on 1 − x, on data set ``name``."""

    def draw(options: FigureOptions) -> Drawing:
        here, absent = available([name], options.seed)
        if not here:
            return Drawing([], [], "", absent)
        model = trained(name, options.seed, options.quick, defended=True)
        cells = [
            cell
            for reflected in (False, True)
            for cell in window_cells(here[0], model, options, ESTIMATORS, reflected=reflected)
        ]
        rows = [row for part in options.pool.run(window_errors, cells) for row in part]
        lead = (
            "Before: the passive party trains on x. After: it trains on 1 − x and the adversary still "
            "assumes x. The model after is the exact image of the model before (weights −W, bias + W·1), "
            f"as it is at the optimum with an unpenalised bias. Means over {averaged_over(options)}."
        )
        return Drawing(rows, [_before_after_plot(name, rows)], lead, theory_notes(rows))

    return draw


def _before_after_plot(name: str, rows: Rows) -> Plot:
    found = averaged(rows, "estimator", "after", "share")
    series = []
    for after in (False, True):
        for e in ESTIMATORS:
            points = sorted((p[2], v[0]) for p, v in found.items() if p[:2] == (e.label, after))
            label = f"{e.label}, {'after' if after else 'before'}"
            series.append(Series(label, [p[0] for p in points], [p[1] for p in points]))
    return lines(name, "passive share of the features", "MSE per feature", series)


# -- Fig. 12 -------------------------------------------------------------------------------------------


def lossless(options: FigureOptions) -> Drawing:
    """Mean KL between the scores of models trained on x and on 1 − x, with the same batches."""
    here, absent = available(RVG_SETS, options.seed)
    cells = [cell for d in here for cell in _kl_cells(d, options)]
    rows = [row for part in options.pool.run(reflected_kl, cells) for row in part]
    found = averaged(rows, "dataset", "share", value="mean_kl")
    series = []
    for d in here:
        points = sorted((p[1], v[0]) for p, v in found.items() if p[0] == d.name)
        series.append(Series(d.name, [p[0] for p in points], [max(p[1], 1e-18) for p in points]))
    shown = lines("training twice", "passive share of the features", "mean KL, nats", series, log_y=True)
    notes = [f"{d.name}: {min(_KL_ROWS, len(d.x)):,} of the {_KL_ROWS:,} rows that RVG uses" for d in here]
    lead = (
        "Both models are trained, with L2 on the weights only; two windows a size. "
        "The rest is the distance of training from its optimum, where the scores are equal."
    )
    return Drawing(rows, [shown], lead, [*notes, *absent])


def _kl_cells(d: Dealt, options: FigureOptions) -> list[Cell]:
    width = d.x.shape[1]
    cells = []
    for size in sizes(width, quick=True):
        for start in windows(width, size, quick=True)[::2]:
            place = {"dataset": d.name, "d": size, "share": size / width, "window": int(start[0])}
            cells.append(Cell({**options.key, **place}, (place, d, start, options.quick, options.seed)))
    return cells


def reflected_kl(place: Facts, d: Dealt, window: Array, quick: bool, seed: int) -> Rows:
    """Train on the reflected columns and compare the scores."""
    turned = d.x.copy()
    turned[:, window] = 1 - turned[:, window]
    rows = d.train_rows
    before = trained(d.name, seed, quick, defended=True)
    training = defended_training(d.name, quick)
    after = train(turned[rows], d.labels[rows], d.classes, training, epoch_rng(seed))
    log_c = before.log_scores(d.x[:_KL_ROWS])
    return [{**place, "mean_kl": mean_kl(log_c, after.log_scores(turned[:_KL_ROWS]))}]


def mean_kl(log_c: Array, released: Array) -> float:
    """Mean KL(c‖c̃) over rows, in nats; both (n, k) log-probabilities, finite."""
    return float((np.exp(log_c) * (log_c - released)).sum(axis=1).mean())


# -- Fig. 13 -------------------------------------------------------------------------------------------


def schemes(options: FigureOptions) -> Drawing:
    """Half* against mean KL for every scheme and strength."""
    here, absent = available(RVG_SETS, options.seed)
    cells = [cell for d in here for cell in _scheme_cells(d, options)]
    rows = [row for part in options.pool.run(scheme_rows, cells) for row in part]
    shown = []
    for name, d in dict.fromkeys((r["dataset"], r["d"]) for r in rows):
        part = where(rows, dataset=name, d=d)
        kl, mse = (averaged(part, "scheme", "alpha", value=v) for v in ("mean_kl", "clamped"))
        series = []
        for scheme in dict.fromkeys(r["scheme"] for r in part):
            points = sorted((kl[p][0], mse[p][0]) for p in kl if p[0] == scheme)
            series.append(Series(scheme, [p[0] for p in points], [p[1] for p in points]))
        axis = "mean KL between true and released scores, nats"
        shown.append(lines(f"{name}, d = {d}", axis, "MSE per feature of clamped half*", series, log_x=True))
    lead = (
        "Noise on the scores that keeps the label: clamped half* (as in the authors' scripts) against its "
        "cost. The paper names neither data set nor d."
    )
    notes = [
        "Both senses of v₁ are shown for schemes 1 and 2: the sign is free, "
        "and matters for clipped estimates.",
        "Strengths: α of schemes 1, 2 and 3; of label_only the probability left to the other classes.",
    ]
    return Drawing(rows, shown, lead, [*theory_notes(rows, "half_star"), *notes, *absent])


def _scheme_cells(d: Dealt, options: FigureOptions) -> list[Cell]:
    x, width = d.predictions(predictions(options), options.seed), d.x.shape[1]
    model = trained(d.name, options.seed, options.quick)
    cells = []
    for size in dict.fromkeys((max(2, width // 4), width // 2)):
        place = {"dataset": d.name, "d": size}
        cells.append(Cell({**options.key, **place}, (place, model, x, windows(width, size, options.quick))))
    return cells


def scheme_rows(place: Facts, model: Model, x: Array, columns: Array) -> Rows:
    """A row per window, scheme, sense and strength."""
    rows: Rows = []
    for w, window in enumerate(columns):
        for label, parameters in _variants():
            moved, kl, noise = _released(label, parameters, model, x, window)
            estimate = nearest_solution(moved.A, moved.b, np.full(len(window), 0.5))
            errors = {"half_star": estimate, "clamped": estimate.clip(0, 1)}
            plain = nearest_solution_mse(moved.A, second_moment(x[:, window], 0.5))
            gain = noise_gain(moved.A, first_differences(len(model.bias)), noise)
            rows.append(
                {
                    **place,
                    "window": w,
                    "closed": plain + gain,  # RVG Theorem 4
                    "scheme": f"{label} {parameters.get('sense', '')}".strip(),
                    "alpha": float(parameters[_STRENGTH.get(label, "alpha")]),
                    "mean_kl": kl,
                    **{name: float(((e - x[:, window]) ** 2).mean()) for name, e in errors.items()},
                }
            )
    return rows


def _variants() -> list[tuple[str, Document]]:
    return [
        (scheme, {_STRENGTH.get(scheme, "alpha"): float(alpha), **sense})
        for scheme, alphas in _ALPHAS.items()
        for sense in ([{"sense": "plus"}, {"sense": "minus"}] if scheme in ("scheme_1", "scheme_2") else [{}])
        for alpha in alphas
    ]


def _released(
    scheme: str, parameters: Facts, model: Model, x: Array, window: Array
) -> tuple[LinearSystem, float, Array]:
    """The adversary's system after the coordinator's defence, the mean KL, the noise's second moment."""
    defense = DEFENSES.get(scheme)(**parameters)
    owner = Owner("coordinator", parameters={"weight": model.weight[:, window]})
    state = defense.fit(owner, np.random.default_rng(0))
    exchange = Exchange("figure", Phase.PREDICT, 0, 0)
    rows = np.arange(len(x), dtype=np.int32)
    context = Context(owner, exchange, rows, state, hook="on_scores", position=0, secret=b"figure")
    log_c = model.log_scores(x)
    moved = defense.on_scores(log_c, context)
    plain = window_system(model, x, window)
    J = np.diff(np.eye(len(model.bias)), axis=0)
    system = LinearSystem(plain.A, plain.b + (moved - log_c) @ J.T, saturated=False)
    return system, mean_kl(log_c, moved), logit_moment(moved - log_c)


PAGES = (
    *(
        Page(f"rvg-fig{number}",
            f"{name.capitalize()} before and after x ↦ 1−x (RVG, Fig. {number})", before_and_after(name))
        for number, name in ((8, "satellite"), (9, "bank"), (10, "robot"), (11, "synthetic"))
    ),
    Page("rvg-fig12", "The effect of x ↦ 1−x on the scores (RVG, Fig. 12)", lossless),
    Page("rvg-fig13", "Half* against mean KL under schemes 1, 2, 3 and the class label (RVG, Fig. "
                      "13)", schemes),
)  # fmt: skip
