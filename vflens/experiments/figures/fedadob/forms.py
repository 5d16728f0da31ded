"""What both forms of the passport layer cost and hide at the paper's rows and rate."""

from collections.abc import Sequence
from dataclasses import replace

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import cells, run, unit, unlearned
from vflens.experiments.figures.fedadob.methods import (
    FEATURES,
    FEDADOB,
    LINEAR_INVERSE,
    LINEAR_KEYLESS,
    NONE,
    PASSPORTS,
    Method,
)
from vflens.experiments.figures.fedadob.studies import Study, studies, whole_mnist
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import spread
from vflens.words import counted

_PRINTED = Method(FEDADOB, (FEATURES,), PASSPORTS, "largest_mean", values=(2, 10))
_AUTHORS = _PRINTED.as_in_the_authors_code()
_REDRAWN = replace(
    _AUTHORS, title=f"{FEDADOB}, authors' layer, keys redrawn", fixed={**_AUTHORS.fixed, "keys": "redrawn"}
)
FORMS = (NONE, _PRINTED, _REDRAWN, _AUTHORS)
_INVERSES = (LINEAR_INVERSE, LINEAR_KEYLESS)
_LEAD = (
    "Accuracy on the test rows, as the paper prints the layer and as the authors' code has it: with a batch "
    "norm and tanh, keys redrawn with each batch or fixed. Beside it stands what is hidden: the error of "
    "one linear map from embeddings to pixels, least squares on granted rows, with the embeddings as they "
    "are and without the scale and the shift of each exchange. The loss is in points of accuracy, seed by "
    "seed. Intervals are 95 % over seeds (Student's t)."
)


def accuracy(options: FigureOptions) -> Drawing:
    """Accuracy and the error of a linear inverse, form by form."""
    study = _study(options)
    rows, refused = run(options, cells(study, FORMS, options.seed, _INVERSES))
    heads = ["layer", "N", "accuracy", "loss", "linear inverse", "… of keyless embeddings", "blind"]
    table = TextTable(f"{study.name}: error = {unit(FEATURES)}", heads, _lines(rows))
    granted = (
        f"The linear maps learn from {counted(study.granted, 'granted training row')} and estimate "
        f"{counted(study.attacked, 'prediction row')}. Without a defence the last convolution has a batch "
        "norm of its own."
    )
    return Drawing(rows, [], _LEAD, [*study.trained, granted, *unlearned(rows), *refused], tables=[table])


def _study(options: FigureOptions) -> Study:
    """The paper's epochs at the full size; eight of them, of one seed, at the default."""
    if options.quick:
        return studies(options)[0]
    whole = whole_mnist()
    if options.size == "full":
        return replace(whole, seeds=options.seeds or whole.seeds)
    return replace(whole, training={**whole.training, "epochs": 8}, seeds=options.seeds or 1)


def _lines(rows: Rows) -> Sequence[Sequence[str]]:
    undefended = _by_seed(rows, NONE, 0.0, LINEAR_INVERSE.name, "accuracy")
    shown = []
    for method in FORMS:
        for value in method.values:
            found = _by_seed(rows, method, value, LINEAR_INVERSE.name, "accuracy")
            losses = [100 * (undefended[s] - a) for s, a in found.items() if s in undefended]
            errors = [_by_seed(rows, method, value, a.name, "error") for a in _INVERSES]
            blind = _by_seed(rows, method, value, LINEAR_INVERSE.name, "blind")
            line = [method.title, f"{value:g}" if method.vary else "–", spread([*found.values()])]
            line += [spread(losses, digits=1) if method.vary else "–"]
            shown.append([*line, *(spread([*e.values()], digits=4) for e in (*errors, blind))])
    return shown


def _by_seed(rows: Rows, method: Method, value: float, attack: str, figure: str) -> dict[int, float]:
    own = where(rows, defense=method.title, strength=value, attack=attack)
    return {r["seed"]: r[figure] for r in own}
