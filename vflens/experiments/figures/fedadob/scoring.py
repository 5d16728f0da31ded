"""Fig. 6: what gradients tell of labels where there are two classes, norm and direction scoring."""

from collections.abc import Sequence

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import caps, cells, run, series
from vflens.experiments.figures.fedadob.methods import SCORED, SCORING, Against, Method
from vflens.experiments.figures.fedadob.studies import Study, clicks
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import Plot, Series, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import spread

_LEAD = (
    "The party that receives gradients is granted 40 labels and scores each training row by its gradient's "
    "length (NS) or by its angle to one gradient of a row granted as positive (DS). The leak is the AUC of "
    "that score; its order may be turned, which is one bit that an adversary guesses. The error is 1 − AUC, "
    "½ for a blind guess. Behind one linear layer the gradients of two classes lie on one line, whose "
    "ends are the classes: so a top model with a hidden layer is shown too. The paper prints curves without "
    "numbers, and three baselines without names: nothing of it can stand beside. Intervals are 95 % over "
    "seeds (Student's t)."
)
_DRAWN = (
    "Of Criteo's first rows all without a click are taken, and one with a click, drawn, for 16 of them: the "
    "paper's ratio, of which it has 120,000 rows."
)


def figure6(options: FigureOptions) -> Drawing:
    """1 − AUC of the leak against the AUC of the task, defence by defence."""
    done = clicks(options)
    methods = [m.coarse() if options.quick else m for m in SCORED]
    wanted = [c for s in done for c in cells(s, methods, options.seed, SCORING)]
    rows, refused = run(options, wanted, scored_set="train")
    rows = [
        {**r, "accuracy": r["auc"], "error": min(1 - r["label_auc"], r["label_auc"]), "blind": 0.5}
        for r in rows
    ]
    own = [(s, where(rows, model=s.name)) for s in done]
    notes = dict.fromkeys(note for s in done for note in s.trained)
    drawn = [_DRAWN] if any("ratio" in s.data for s in done) else []
    return Drawing(
        rows,
        [_plot(s, found, methods, attack) for s, found in own for attack in SCORING],
        _LEAD,
        [*notes, *drawn, *refused],
        tables=[_table(s, found, methods) for s, found in own],
    )


def _plot(study: Study, rows: Rows, methods: Sequence[Method], attack: Against) -> Plot:
    drawn = [series(m, c) for m in methods if (c := caps(rows, m, attack.name))]
    drawn.append(Series("blind guess", [0.5, 1], [0.5, 0.5]))
    title = f"{study.name}: {attack.column}, error of labels against the task"
    return lines(title, "AUC of the task", "1 − AUC of the leak", drawn, order=[m.title for m in methods])


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
