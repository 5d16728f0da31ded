"""VAR's distorted parameters: MSE of half* against the distortion ε and d (Figs. 9 to 13)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vflens.array import ScaledColumns
from vflens.errors import ConfigError
from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.figures._data import Dealt, available, sizes, trained, windows
from vflens.experiments.figures._windows import (
    averaged,
    averaged_over,
    predictions,
    theory_notes,
    window_system,
)
from vflens.experiments.figures.central import Model
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import Plot, Series, lines
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.numerics.linear_system import first_differences, nearest_solution
from vflens.numerics.theory.believed import closed_form
from vflens.numerics.theory.distortion import largest_distortion
from vflens.plugins.defense import Context
from vflens.registry import DEFENSES
from vflens.types import Array, Exchange, Facts, Owner, Phase
from vflens.words import counted

#: ε as shares of the largest for each window's weights.
_SHARES, _QUICK_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8), (0.05, 0.4)
#: ε of Fig. 12 on Satellite; the text names no others.
_EPSILONS = (0.001, 0.01, 0.022)
_SETS = ("satellite", "bank", "adult", "pendigits")


def against_distortion(
    places: Sequence[tuple[str, int]], title: str, cases: Mapping[str, bool]
) -> Callable[[FigureOptions], Drawing]:
    """MSE against ε for each (data set, d) of ``places`` and each case; a case's value: whether it also
    rotates two classes.
    """

    def draw(options: FigureOptions) -> Drawing:
        here, absent = available(list(dict.fromkeys(name for name, _ in places)), options.seed)
        cells = [
            cell
            for d in here
            for name, size in places
            if name == d.name
            for case, rotate in cases.items()
            for cell in _cells(d, size, options, case=case, rotate=rotate)
        ]
        rows = [row for part in options.pool.run(distorted_rows, cells) for row in part]
        found = averaged([r for r in rows if r.get("mse") is not None], "dataset", "d", "case", "share")
        plain = averaged(rows, "dataset", "d", value="half_star")
        series = []
        for name, size, case in dict.fromkeys(p[:3] for p in found):
            points = sorted((p[3], v[0]) for p, v in found.items() if p[:3] == (name, size, case))
            points = [(0.0, plain[name, size][0]), *points]
            label = f"{name}, d = {size}" + (f", {case}" if len(cases) > 1 else "")
            series.append(Series(label, [p[0] for p in points], [p[1] for p in points]))
        x = "ε as a share of the largest that the weights admit"
        shown = lines(title, x, "MSE per feature of half*, unclipped", series, log_y=True)
        lead = (
            "The passive party discloses weights at distance ε from the true ones, chosen to mislead half* "
            "most; the scores stay "
            f"exact. At ε = 0: half* itself. Means over {averaged_over(options)}."
        )
        lead += " The paper does not name its d." if len({d for _, d in places}) > 1 else ""
        left = {(r["dataset"], r["d"], r["case"], r["share"]) for r in rows if r.get("refused")}
        notes = [
            f"{name}, d = {size}, {case}: some windows have no solution at {share:g}, the mean is over the "
            "others"
            for name, size, case, share in sorted(left)
        ]
        return Drawing(rows, [shown], lead, [*theory_notes(rows), *notes, *absent])

    return draw


def against_size(options: FigureOptions) -> Drawing:
    """MSE against d at three ε a data set, with half* and half (Fig. 12)."""
    here, absent = available(_SETS, options.seed)
    cells = [
        cell
        for d in here
        for size in sizes(d.x.shape[1], options.quick)
        for cell in _cells(d, size, options, _EPSILONS)
    ]
    rows = [row for part in options.pool.run(distorted_rows, cells) for row in part]
    shown = [_size_plot(d.name, where(rows, dataset=d.name)) for d in here]
    lead = (
        "The passive party discloses weights at distance ε from the true ones, chosen to mislead half* most; "
        "the scores stay "
        f"exact. Unclipped. Means over {averaged_over(options)}. The paper's ε of Satellite for all: its "
        "text names no others."
    )
    left = {d.name: sum(bool(r.get("refused")) for r in rows if r["dataset"] == d.name) for d in here}
    notes = [
        f"{name}: {counted(n, 'window does', many='windows do')} not admit their ε: no point there"
        for name, n in left.items()
        if n
    ]
    return Drawing(rows, shown, lead, [*theory_notes(rows), *notes, *absent])


def _size_plot(name: str, rows: Rows) -> Plot:
    distorted = averaged([r for r in rows if r.get("mse") is not None], "epsilon", "d")
    for r in rows:
        if r.get("refused"):  # fewer windows would mean other features
            distorted.pop((r["epsilon"], r["d"]), None)
    series = []
    for epsilon in _EPSILONS:
        points = sorted((p[1], v[0]) for p, v in distorted.items() if p[0] == epsilon)
        series.append(Series(f"ε = {epsilon:g}", [p[0] for p in points], [p[1] for p in points]))
    for label in ("half_star", "half"):
        plain = sorted((p[0], v[0]) for p, v in averaged(rows, "d", value=label).items())
        series.append(Series(label, [p[0] for p in plain], [p[1] for p in plain]))
    return lines(name, "passive features d", "MSE per feature", series)


def _cells(
    d: Dealt,
    size: int,
    options: FigureOptions,
    epsilons: Sequence[float] = (),
    *,
    case: str = "",
    rotate: bool = False,
) -> list[Cell]:
    """A cell for each window of ``size``: ``epsilons``, else shares of the largest ε of the case without
    rotations.
    """
    model, x = trained(d.name, options.seed, options.quick), d.predictions(predictions(options), options.seed)
    shares = _QUICK_SHARES if options.quick else _SHARES
    cells = []
    for window in windows(d.x.shape[1], size, options.quick):
        place = {"dataset": d.name, "d": size, "case": case, "window": int(window[0]), "seed": options.seed}
        most = largest_distortion(model.weight[:, window])
        levels = [(e / most, e) for e in epsilons] or [(share, share * most) for share in shares]
        cells.append(Cell({**options.key, **place}, (place, (d.x, model, x), window, levels, rotate)))
    return cells


def distorted_rows(
    place: Facts,
    source: tuple[Array, Model, Array],
    window: Array,
    levels: Sequence[tuple[float, float]],
    rotate: bool = False,
) -> Rows:
    """A row per ε: measured MSE of half* against the disclosed weights.

    Args:
        place: stands in every row.
        source: all rows (the passive party uses their moments), the model, and the prediction rows.
        window: the passive columns.
        levels: pairs of the share of the largest ε, and ε.
        rotate: whether weights of two classes are rotated too.
    """
    everything, model, x = source
    weight, half = model.weight[:, window], np.full(len(window), 0.5)
    system, truth = window_system(model, x, window), x[:, window]
    plain = {
        "half_star": float(((nearest_solution(system.A, system.b, half) - truth) ** 2).mean()),
        "half": float(((half - truth) ** 2).mean()),
    }
    rows: Rows = []
    for share, epsilon in levels:
        row = {**place, "share": share, "epsilon": epsilon, **plain}
        try:
            disclosed = _disclosed(weight, everything[:, window], epsilon, rotate)
        except ConfigError as error:
            rows.append({**row, "refused": str(error)})
            continue
        believed = first_differences(len(weight)) @ disclosed
        found = nearest_solution(believed, system.b, half)
        stated = closed_form(0.5, system.A, believed, truth)
        if stated is not None:
            row |= {"closed": stated.mse, "statement": stated.statement}
        errors = {"mse": found, "clamped": found.clip(0, 1)}
        rows.append({**row, **{name: float(((e - truth) ** 2).mean()) for name, e in errors.items()}})
    return rows


def _disclosed(weight: Array, x: Array, epsilon: float, rotate: bool) -> Array:
    defense = DEFENSES.get("distorted_parameters")(epsilon=epsilon, starts=1, rotate=rotate)
    exchange, nothing = Exchange("figure", Phase.DISCLOSE, 0, 0), np.zeros(0, np.int32)
    context = Context(
        Owner("passive", ScaledColumns(x)),
        exchange,
        nothing,
        {},
        hook="on_parameters",
        position=0,
        secret=b"figure",
    )
    disclosed = defense.on_parameters({"weight": weight}, context)
    assert disclosed is not None
    distorted: Array = disclosed["weight"]
    return distorted


_TWO_CLASSES = tuple((name, d) for name in ("bank", "adult") for d in (3, 6, 10))
_ONE_FEATURE = tuple((name, 1) for name in ("bank", "adult", "satellite", "pendigits"))
_MANY_CLASSES = (("satellite", 3), ("satellite", 8), ("pendigits", 4), ("pendigits", 12))
PAGES = (
    Page(
        "var-fig9",
        "Half* against the distortion, two classes (VAR, Fig. 9)",
        against_distortion(_TWO_CLASSES, "cases i and iv", {"case iv": False, "case i": True}),
    ),
    Page(
        "var-fig10",
        "One passive feature under distortion (VAR, Fig. 10)",
        against_distortion(_ONE_FEATURE, "case iii", {"case iii": False}),
    ),
    Page(
        "var-fig11",
        "Half* against the distortion, many classes (VAR, Fig. 11)",
        against_distortion(_MANY_CLASSES, "cases i and ii", {"case i or ii": False}),
    ),
    Page("var-fig12", "Half* under distorted weights against the number of features (VAR, Fig. "
                      "12)", against_size),
    Page(
        "var-fig13",
        "Two passive features of PenDigits (VAR, Fig. 13)",
        against_distortion([("pendigits", 2)], "case ii", {"case ii": False}),
    ),
)  # fmt: skip
