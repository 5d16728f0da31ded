"""Table IV (CAP) and Fig. 4 (error against accuracy), of the same federations."""

from collections.abc import Sequence

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import (
    best,
    caps,
    cells,
    missed_undefended,
    run,
    series,
    unit,
    unlearned,
)
from vflens.experiments.figures.fedadob.methods import (
    ATTACKS,
    DEFENSES,
    FEATURES,
    LABELS,
    Method,
    printed_attack,
)
from vflens.experiments.figures.fedadob.printed import CAPS, MODELS
from vflens.experiments.figures.fedadob.studies import Study, studies
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import Plot, Series, bars, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import interval, spread

_COLUMNS = {FEATURES: ("CAFE", "MI"), LABELS: ("PMC",)}
_LEAD = (
    "CAP is the mean over a grid of strengths of accuracy times recovery error (FedAdOb, equation (13)): "
    "larger is better for the defence. It depends on the grid, which stands in the table. As printed: the "
    "paper's own attack. Best attack: at each strength the one of least error among all that are run here. "
    "An adversary can guess blindly instead: min(best, blind). Intervals are 95 % over seeds (Student's t). "
    "Accuracy is the mean over the grid."
)


def table4(options: FigureOptions) -> Drawing:
    """CAP of each defence against the paper's attacks and against the best of ours."""
    done, rows, notes = _measured(options)
    tables, plots = [], []
    for study in done:
        own = where(rows, model=study.name)
        for on in (FEATURES, LABELS):
            tables.append(_table(study, own, on, _methods(options, on)))
            plots.append(_bars(study, own, on, _methods(options, on)))
    absent = [m for m in MODELS if m not in {s.beside for s in done}]
    lead = _missed(done, rows) + _LEAD
    return Drawing(rows, plots, lead, notes, tables=[*tables, *map(_paper_only, absent)])


def figure4(options: FigureOptions) -> Drawing:
    """Error against accuracy, defence by defence, for each of the paper's attacks and for the best."""
    done, rows, notes = _measured(options)
    plots = [
        plot
        for study in done
        for on in (FEATURES, LABELS)
        for plot in _curves(study, where(rows, model=study.name), on, _methods(options, on))
    ]
    lead = (
        "Each point is a strength: to the right the task is learned better, upwards the attack errs more. "
        "The grey line is the best blind guess: above it an error shows a failed attack, not hidden data. "
        "Intervals are 95 % over seeds (Student's t)."
    )
    return Drawing(rows, plots, _missed(done, rows) + lead, notes)


def _missed(done: Sequence[Study], rows: Rows) -> str:
    columns = [c for several in _COLUMNS.values() for c in several]
    return "".join(missed_undefended(s.name, rows, columns, s.beside) for s in done)


def _measured(options: FigureOptions) -> tuple[list[Study], Rows, list[str]]:
    done, methods = studies(options), _every(options)
    rows, refused = run(options, [c for s in done for c in cells(s, methods, options.seed)])
    only = [m for m in MODELS if m not in {s.beside for s in done}]
    notes = [note for s in done for note in s.notes]
    notes += [f"Paper only, not run here: {', '.join(only)}."] if only else []
    return done, rows, [*notes, *unlearned(rows), *refused]


def _every(options: FigureOptions) -> list[Method]:
    return [m.coarse() if options.quick else m for m in DEFENSES]


def _methods(options: FigureOptions, on: str) -> list[Method]:
    return [m for m in _every(options) if on in m.against]


def _table(study: Study, rows: Rows, on: str, methods: Sequence[Method]) -> TextTable:
    heads = ["defence", "grid", "accuracy"]
    for column in _COLUMNS[on]:
        heads += [f"{column}, paper", f"{column} as printed, ours"]
    heads += ["best attack", "min(best, blind)", "blind alone", "best attacks"]
    lines_ = [_line(study, rows, on, m) for m in methods]
    return TextTable(f"{study.name} beside {study.beside}: CAP, error = {unit(on)}", heads, lines_)


def _line(study: Study, rows: Rows, on: str, method: Method) -> list[str]:
    strongest = best(rows, method, on)
    shown = [method.title, _grid(method), spread([c.accuracy for c in strongest])]
    for column in _COLUMNS[on]:
        printed = printed_attack(column)
        shown.append(str(CAPS.get((column, study.beside, method.printed), "–")))
        shown.append(spread([c.value for c in caps(rows, method, printed)]))
    names = dict.fromkeys(s.attack for c in strongest for s in c.settings)
    return [
        *shown,
        spread([c.value for c in strongest]),
        spread([c.or_blind for c in strongest]),
        spread([c.blind for c in strongest]),
        ", ".join(names),
    ]


def _grid(method: Method) -> str:
    return f"{method.vary} = {', '.join(f'{v:g}' for v in method.values)}" if method.vary else "–"


def _paper_only(model: str) -> TextTable:
    rows = [[f"{a}, {d}", str(v)] for (a, m, d), v in CAPS.items() if m == model]
    return TextTable(f"{model}: paper only", ["attack, defence", "CAP, paper"], rows)


def _bars(study: Study, rows: Rows, on: str, methods: Sequence[Method]) -> Plot:
    """No bar where nothing was scored: a CAP of 0 would be no protection at all."""
    shown: dict[str, list[float | None]] = {}
    for column in _COLUMNS[on]:
        printed = [CAPS.get((column, study.beside, m.printed)) for m in methods]
        shown[f"{column}, paper ({study.beside})"] = [p.mean if p else None for p in printed]
        name = printed_attack(column)
        shown[f"{column} as printed, ours"] = [_mean([c.value for c in caps(rows, m, name)]) for m in methods]
    strongest = [best(rows, m, on) for m in methods]
    shown["best attack"] = [_mean([c.value for c in seeds]) for seeds in strongest]
    shown["blind guess"] = [_mean([c.blind for c in seeds]) for seeds in strongest]
    return bars(f"{study.name}: CAP, {on}", [m.title for m in methods], "CAP", shown)


def _mean(values: Sequence[float]) -> float | None:
    return interval(values)[0] if values else None


def _curves(study: Study, rows: Rows, on: str, methods: Sequence[Method]) -> list[Plot]:
    shown = []
    printed = [a for a in ATTACKS if a.on == on and a.printed]
    for title, name in [*((f"{a.column} as printed", a.name) for a in printed), ("best attack", "")]:
        found = [(m, caps(rows, m, name) if name else best(rows, m, on)) for m in methods]
        drawn = [series(m, c) for m, c in found if c]
        grey = [s.blind for _, seeds in found for c in seeds for s in c.settings]
        if grey:
            drawn.append(Series("blind guess", [0, 1], [interval(grey)[0]] * 2))
        heading = f"{study.name}: {title}, error against accuracy"
        shown.append(lines(heading, "accuracy", unit(on), drawn, order=[m.title for m in methods]))
    return shown
