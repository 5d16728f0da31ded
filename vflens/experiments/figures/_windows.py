"""Errors of estimators over cyclic windows of passive features: the loop of most papers' figures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures._data import Dealt, sizes, windows
from vflens.experiments.figures.central import Model
from vflens.experiments.pages.plots import Plot, Series, lines
from vflens.experiments.results.theory import TOLERANCE
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.theory import believed
from vflens.plugins.attack import LinearAttack
from vflens.registry import ATTACKS
from vflens.score.theory import statements
from vflens.types import Array, Document, Estimate, Facts, RowStatus
from vflens.words import counted

PREDICTIONS, QUICK_PREDICTIONS = 1000, 100
_NOTHING = 1e-9  # an error of 0 in theory is rounding in measurement, times the equations' condition
GIA_ROWS = 50  # a thousand steps for each of up to 1,296 windows


@dataclass(frozen=True)
class Estimator:
    """A linear attack in a figure; ``rows`` limits its rows."""

    label: str
    attack: str
    parameters: Facts = field(default_factory=dict)
    rows: int = PREDICTIONS


def named(*attacks: str) -> tuple[Estimator, ...]:
    """Attacks with their default parameters, under their own names."""
    return tuple(Estimator(a, a, rows=GIA_ROWS if a == "gia" else PREDICTIONS) for a in attacks)


def predictions(options: FigureOptions) -> int:
    """Number N of predictions in a figure's means."""
    return QUICK_PREDICTIONS if options.quick else PREDICTIONS


def averaged_over(options: FigureOptions) -> str:
    """The rows and windows of a mean, in words."""
    return (
        f"{counted(predictions(options), 'row', ',')} and {'four' if options.quick else 'all cyclic'} windows"
    )


def window_errors(
    place: Facts,
    model: Model,
    x: Array,
    columns: Array,
    estimators: Sequence[Estimator],
) -> Rows:
    """One row per window and estimator: MSE per feature, unusable rows; for
    :meth:`vflens.experiments.sweeps.pool.Pool.run`.

    Args:
        place: part of every row. "seed": for estimators that draw. "after": the passive party trained on 1 −
            x without the adversary's knowledge.
        model: of all columns.
        x: prediction rows (N, d_t).
        columns: windows (w, d).
        estimators: the attacks.
    """
    rows: Rows = []
    for w, window in enumerate(columns):
        system = window_system(model, x, window, reflected=place["after"])
        for e in estimators:
            attack: LinearAttack = ATTACKS.get(e.attack)(**e.parameters)
            estimate = attack.solve_system(
                head(system, e.rows), rng=np.random.default_rng((place["seed"], len(window), w))
            )
            truth = x[: len(estimate.values), window]
            closed = _closed_form(e.attack, system.A, truth, reflected=place["after"])
            rows.append(
                {**place, "window": w, "estimator": e.label, **_scored(estimate, truth), "closed": closed}
            )
    return rows


def _closed_form(attack: str, A: Array, truth: Array, *, reflected: bool) -> float | None:
    """The closed form of ``attack`` on these rows (RVG Theorem 2, §VII-A), or None."""
    of = statements(attack)
    if of is None or of.center is None or of.clipped or of.guessed:
        return None
    center = of.center
    stated = believed.reflected(center, A, truth) if reflected else believed.closed_form(center, A, A, truth)
    return None if stated is None else stated.mse


def theory_notes(rows: Rows, measured: str = "mse") -> list[str]:
    """The difference between closed forms and measurements in ``rows``; a warning beyond rounding."""
    both = [(r[measured], r["closed"]) for r in rows if r.get("closed") is not None]
    if not both:
        return []
    away = [abs(m - closed) / max(closed, 1e-12) for m, closed in both if max(m, closed) > _NOTHING]
    worst = max(away, default=0.0)
    if worst > TOLERANCE:
        wrong = sum(a > TOLERANCE for a in away)
        return [
            f"THEORY AND MEASUREMENT DISAGREE in {wrong} of {counted(len(both), 'row')}, by {worst:.1e} of "
            "the closed form at most"
        ]
    return [f"{len(both)} closed forms agree with measurement, to {worst:.1e}"]


def window_system(model: Model, x: Array, window: Array, *, reflected: bool = False) -> LinearSystem:
    """A x = b' of the adversary whose passive columns are ``window``, from the exact scores of ``x``.

    ``reflected``: the optimum on 1 − x has weights −W_pas and bias + W_pas·1, the same scores, so that the
    adversary's equations hold for 1 − x (bias without penalty; RVG Prop. 4).
    """
    weight = model.weight[:, window]
    bias = model.bias + weight.sum(axis=1) if reflected else model.bias
    others = np.setdiff1d(np.arange(x.shape[1]), window)
    known = x[:, others] @ model.weight[:, others].T + bias
    parts = LinearSystem.from_scores(model.log_scores(x), known, -weight if reflected else weight)
    assert len(parts) == 1, "float64 log-probabilities of finite logits are finite"
    return parts[0][1]


def head(system: LinearSystem, rows: int) -> LinearSystem:
    """The first ``rows`` rows."""
    log_c = None if system.log_c is None else system.log_c[:rows]
    return LinearSystem(system.A, system.b[:rows], system.saturated, log_c)


def _scored(estimate: Estimate, truth: Array) -> Document:
    return {
        "rows": len(truth),
        "mse": float(((estimate.values - truth) ** 2).mean()),
        "unusable": float((estimate.status != RowStatus.OK).mean()),
    }


def window_cells(
    data: Dealt,
    model: Model,
    options: FigureOptions,
    estimators: Sequence[Estimator],
    *,
    reflected: bool = False,
) -> list[Cell]:
    """A cell for each window size of ``data``."""
    x = data.predictions(predictions(options), options.seed)
    width = x.shape[1]
    cells = []
    for d in sizes(width, options.quick):
        place = {"dataset": data.name, "d": d, "share": d / width, "after": reflected, "seed": options.seed}
        key = {**options.key, **place, "estimators": [[e.label, e.attack, e.parameters] for e in estimators]}
        columns = windows(width, d, options.quick)
        cells.append(Cell(key, (place, model, x, columns, tuple(estimators))))
    return cells


def averaged(rows: Rows, *by: str, value: str = "mse") -> dict[tuple[Any, ...], tuple[float, float]]:
    """Mean and 95 % half width of ``value`` for each combination of ``by``, over the other keys."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[b] for b in by), []).append(row[value])
    return {
        place: (float(np.mean(v)), 1.96 * float(np.std(v, ddof=1)) / len(v) ** 0.5 if len(v) > 1 else 0.0)
        for place, v in groups.items()
    }


def size_curves(rows: Rows, title: str, order: Sequence[str]) -> Plot:
    """MSE against d/d_t, one line per estimator, averaged over windows."""
    found = averaged(rows, "estimator", "share")
    series = []
    for name in order:
        points = sorted((share, mean) for (e, share), (mean, _) in found.items() if e == name and mean > 1e-7)
        series.append(Series(name, [p[0] for p in points], [p[1] for p in points]))
    return lines(title, "passive share of the features", "MSE per feature", series, log_y=True, order=order)
