"""Fig. 6: what gradients tell of labels where there are two classes, norm and direction scoring."""

from collections.abc import Sequence

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import caps, cells, run, series
from vflens.experiments.figures.fedadob.methods import SCORED, SCORING, Method
from vflens.experiments.figures.fedadob.studies import Study, clicks
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import Series, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import spread

_LEAD = (
    "The party that receives gradients is granted 40 labels and scores each training row by its gradient's "
    "length (NS) or by its angle to one gradient of a row granted as positive (DS). The leak is the AUC of "
    "that score; its order may be turned, which is one bit that an adversary guesses. The error is 1 − AUC, "
    "½ for a blind guess. The paper prints curves without numbers, and three baselines without names: "
    "nothing of it can stand beside. Intervals are 95 % over seeds (Student's t)."
)


def figure6(options: FigureOptions) -> Drawing:
    """1 − AUC of the leak against the AUC of the task, defence by defence."""
    study = clicks(options)
    methods = [m.coarse() if options.quick else m for m in SCORED]
    rows, refused = run(options, cells(study, methods, options.seed, SCORING), scored_set="train")
    rows = [
        {**r, "accuracy": r["auc"], "error": min(1 - r["label_auc"], r["label_auc"]), "blind": 0.5}
        for r in rows
    ]
    plots = []
    for attack in SCORING:
        drawn = [series(m, c) for m in methods if (c := caps(rows, m, attack.name))]
        drawn.append(Series("blind guess", [0.5, 1], [0.5, 0.5]))
        order = [m.title for m in methods]
        title = f"{study.name}: {attack.column}, error of labels against the task"
        plots.append(lines(title, "AUC of the task", "1 − AUC of the leak", drawn, order=order))
    return Drawing(rows, plots, _LEAD, [*study.trained, *refused], tables=[_table(study, rows, methods)])


def _table(study: Study, rows: Rows, methods: Sequence[Method]) -> TextTable:
    heads = ["defence", "AUC of the task"]
    heads += [f"{a.column}, 1 − AUC" for a in SCORING]
    shown = []
    for method in methods:
        for i, value in enumerate(method.values):
            line = [f"{method.title}, {method.vary} = {value:g}" if method.vary else method.title]
            for attack in SCORING:
                at = [c.settings[i] for c in caps(rows, method, attack.name)]
                line += [spread([s.accuracy for s in at])] if attack is SCORING[0] else []
                line += [spread([s.error for s in at])]
            shown.append(line)
    return TextTable(study.name, heads, shown)
