"""Table III and Fig. 3: what a server reconstructs of a client."""

from collections.abc import Sequence

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import (
    best,
    caps,
    cells,
    missed,
    missed_undefended,
    run,
    series,
    unit,
)
from vflens.experiments.figures.fedadob.clients import (
    BLACK_BOX,
    BLACK_BOX_ATTACKS,
    DEFENDED,
    ONE_LAYER_ATTACKS,
    SERVER_ATTACKS,
    SPLITFED,
    ClientStudy,
    one_layer,
    study,
)
from vflens.experiments.figures.fedadob.methods import FEATURES, Against, Method
from vflens.experiments.figures.fedadob.printed import BLACK_BOX_ERRORS, HORIZONTAL_MODELS
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import Plot, Series, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import interval, spread
from vflens.numerics.theory.fedadob import Cap


def figure3(options: FigureOptions) -> Drawing:
    """Error against accuracy, defence by defence, for WGI, WMI, and the best attack."""
    methods = [m.coarse() if options.quick else m for m in DEFENDED]
    rows: Rows = []
    notes: list[str] = []
    plots, tables, deep = [], [], study(options)
    for of, attacks in ((deep, SERVER_ATTACKS), (one_layer(deep), ONE_LAYER_ATTACKS)):
        own, text = _measured(options, of, methods, attacks)
        rows, notes = [*rows, *own], [*notes, *(note for note in text if note not in notes)]
        plots += [_curves(of, own, methods, column) for column in ("WGI", "WMI", "")]
        tables.append(_cap_table(of, own, methods))
    lead = missed_undefended(deep.name, rows, ["CAFE"], deep.beside) + (
        "Each point is a strength: to the right clients predict better, upwards the attack errs more. The "
        "grey line is the best blind guess: above it an error shows a failed attack, not hidden data. "
        '"Private bottom" is FedAdOb without its passports. As printed: the paper\'s own attack, which '
        "for WGI descends by Adam: L-BFGS fails on maxima and ReLU. The paper has no mlp: there "
        "wgi_moments reads gradients in closed form. The paper prints curves alone: what its WMI, CAFE, errs "
        "without a defence is of its Table IV. Best attack: at each strength the one of least error. "
        "Intervals are 95 % over seeds (Student's t)."
    )
    return Drawing(rows, plots, lead, notes, tables=tables)


def table3(options: FigureOptions) -> Drawing:
    """Errors of black-box inversions under SplitFed and FedAdOb, N = 2."""
    of = study(options)
    rows, notes = _measured(options, of, BLACK_BOX, BLACK_BOX_ATTACKS)
    heads = ["method", "accuracy", "BGI, paper", "BGI, ours", "BMI, paper", "BMI, ours", "blind"]
    table = TextTable(
        f"{of.name} beside {of.beside}: {unit(FEATURES)}", heads, [_errors(rows, m) for m in BLACK_BOX]
    )
    paper = [
        [f"{method}, {model}", *(f"{error:.3f}" for error in errors)]
        for (method, model), errors in BLACK_BOX_ERRORS.items()
    ]
    printed = TextTable("Table III as printed", ["method, model", "BGI", "BMI"], paper)
    lead = "".join(
        missed(f"{a.column} under {SPLITFED}", _values(rows, BLACK_BOX[0], a), _paper(BLACK_BOX[0], a))
        for a in BLACK_BOX_ATTACKS
    )
    lead += (
        "The server learns the clients' bottom models from granted rows. Under SplitFed it receives "
        "embeddings in training, under FedAdOb none: those of the attacked rows, and gradients of each row's "
        "loss in the top model, are granted in both, not on the wire. The paper gives no accuracy and no "
        "blind error."
    )
    more = (
        "BMI learns a bottom model from the embeddings of granted rows. BGI learns it from their labels, "
        "through the top model, and then looks for rows whose gradient in the top model is the granted one."
    )
    return Drawing(rows, [], lead, [*notes, more], tables=[table, printed])


def _measured(
    options: FigureOptions, of: ClientStudy, methods: Sequence[Method], attacks: Sequence[Against]
) -> tuple[Rows, list[str]]:
    found, refused = run(options, cells(of, methods, options.seed, attacks), "train")
    rows = where(found, target=of.names[0])
    only = [m for m in HORIZONTAL_MODELS if m != of.beside]
    return rows, [*of.notes, f"Paper only, not run here: {', '.join(only)}.", *refused]


def _found(rows: Rows, method: Method, column: str) -> list[Cap]:
    """Against the printed attack of ``column``, or against the best of all."""
    printed = next((a.name for a in SERVER_ATTACKS if a.column == column and a.printed), "")
    return caps(rows, method, printed) if printed else best(rows, method, FEATURES, ONE_LAYER_ATTACKS)


def _curves(of: ClientStudy, rows: Rows, methods: Sequence[Method], column: str) -> Plot:
    found = [(m, _found(rows, m, column)) for m in methods]
    drawn = [series(m, c) for m, c in found if c]
    grey = [s.blind for _, seeds in found for c in seeds for s in c.settings]
    if grey:
        drawn.append(Series("blind guess", [0, 1], [interval(grey)[0]] * 2))
    title = f"{column} as printed" if column else "best attack"
    order = [m.title for m in methods]
    return lines(
        f"{of.name}: {title}, error against accuracy", "accuracy", unit(FEATURES), drawn, order=order
    )


def _cap_table(of: ClientStudy, rows: Rows, methods: Sequence[Method]) -> TextTable:
    heads = [
        "defence",
        "accuracy",
        "WGI as printed",
        "WMI as printed",
        "best attack",
        "min(best, blind)",
        "blind alone",
        "attacks",
    ]
    shown = []
    for method in methods:
        each = [_found(rows, method, column) for column in ("WGI", "WMI", "")]
        best = each[-1]
        names = dict.fromkeys(s.attack for c in best for s in c.settings)
        shown.append(
            [
                method.title,
                spread([c.accuracy for c in best]),
                *(spread([c.value for c in found]) for found in each),
                spread([c.or_blind for c in best]),
                spread([c.blind for c in best]),
                ", ".join(names),
            ]
        )
    return TextTable(f"{of.name}: CAP (equation (13)), error = {unit(FEATURES)}", heads, shown)


def _errors(rows: Rows, method: Method) -> list[str]:
    found = caps(rows, method, BLACK_BOX_ATTACKS[0].name)
    shown = [method.title, spread([c.accuracy for c in found])]
    for attack in BLACK_BOX_ATTACKS:
        shown += [f"{_paper(method, attack):.3f}", spread(_values(rows, method, attack))]
    return [*shown, spread([c.settings[0].blind for c in found])]


def _values(rows: Rows, method: Method, attack: Against) -> list[float]:
    """The errors of ``attack``, seed by seed."""
    return [c.settings[0].error for c in caps(rows, method, attack.name)]


def _paper(method: Method, attack: Against) -> float:
    found: float = getattr(BLACK_BOX_ERRORS[method.printed, "MNIST"], attack.name)
    return found
