"""Tables V and VI: what the range N of the keys' means, and their variance σ², buy and cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import (
    best,
    caps,
    cells,
    missed_undefended,
    run,
    unit,
    unlearned,
)
from vflens.experiments.figures.fedadob.methods import (
    FEATURES,
    FEDADOB,
    LABELS,
    NONE,
    PASSPORTS,
    Method,
    printed_attack,
)
from vflens.experiments.figures.fedadob.printed import LARGEST_MEANS, VARIANCES
from vflens.experiments.figures.fedadob.studies import Study, studies
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import Plot, Series, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import interval, spread
from vflens.numerics.theory.fedadob import Cap


@dataclass(frozen=True)
class Ablation:
    """One parameter of passports at both parties, the paper's ``printed`` accuracy and error beside.

    ``column`` is the attack's in Table IV; ``letter`` is the paper's name of what varies, whose values are
    the keys of ``printed``.
    """

    letter: str
    column: str
    method: Method
    printed: Mapping[int, tuple[float, float]]

    @property
    def on(self) -> str:
        """What the attack estimates."""
        return self.method.against[0]

    @property
    def fixed(self) -> str:
        """The other parameter, in words."""
        return self.method.constants

    def as_in_the_authors_code(self) -> Self:
        """With the layer of the authors' code."""
        return replace(self, method=self.method.as_in_the_authors_code())

    def coarse(self) -> Self:
        """At two strengths, with means that a small network learns with in few epochs."""
        positions = [0, 3]
        fixed = {k: v if isinstance(v, str) else min(v, 2.0) for k, v in self.method.fixed.items()}
        method = self.method.at_strengths(*(self.method.values[i] for i in positions))
        printed = dict(list(self.printed.items())[i] for i in positions)
        return replace(self, method=replace(method, fixed=fixed), printed=printed)


_MEANS = Ablation(
    "N",
    "CAFE",
    Method(
        FEDADOB, (FEATURES,), PASSPORTS, "largest_mean", values=tuple(LARGEST_MEANS), fixed={"sigma": 1.0}
    ),
    LARGEST_MEANS,
)
_DEVIATIONS = tuple(math.sqrt(v) for v in VARIANCES)  # the plug-in's parameter is σ
_VARIANCES = Ablation(
    "σ²",
    "PMC",
    Method(FEDADOB, (LABELS,), PASSPORTS, "sigma", values=_DEVIATIONS, fixed={"largest_mean": 100.0}),
    VARIANCES,
)
_BESIDE = "AlexNet-CIFAR10"


def table5(options: FigureOptions) -> Drawing:
    """Accuracy and error of features against N, σ = 1."""
    return _drawn(options, _MEANS)


def table6(options: FigureOptions) -> Drawing:
    """Accuracy and error of labels against σ², N = 100."""
    return _drawn(options, _VARIANCES)


def _drawn(options: FigureOptions, what: Ablation) -> Drawing:
    if options.quick:
        what = what.coarse()
    everything = studies(options)
    done = [s for s in everything if s.beside == _BESIDE] or everything
    forms = (what, what.as_in_the_authors_code())
    undefended = replace(NONE, against=what.method.against)
    methods = [undefended, *(form.method for form in forms)]
    wanted = [c for s in done for c in cells(s, methods, options.seed)]
    rows, refused = run(options, wanted)
    lead = "".join(missed_undefended(s.name, rows, [what.column], _BESIDE) for s in done) + (
        f"{what.letter} varies, {what.fixed}, passports at both parties: as the paper prints the layer, and "
        f"as the authors' code has it. Beside the paper's numbers, of {_BESIDE}, stand those against its own "
        "attack and against the best attack at each strength. An error above the blind guess's shows a "
        "failed attack, not hidden data. Intervals are 95 % over seeds (Student's t)."
    )
    each = [(s, form, where(rows, model=s.name)) for s in done for form in forms]
    other = [f"{_BESIDE} is paper only here." for s in done if s.beside != _BESIDE]
    return Drawing(
        rows,
        [_plot(s, own, form) for s, form, own in each],
        lead,
        [*(note for s in done for note in s.notes), *other, *unlearned(rows), *refused],
        tables=[_table(s, own, form) for s, form, own in each],
    )


def _table(study: Study, rows: Rows, what: Ablation) -> TextTable:
    heads = [what.letter, "accuracy, paper", "accuracy, ours", f"{what.column}, paper", "as printed, ours"]
    heads += ["best attack", "min(best, blind)", "blind alone", "best attacks"]
    printed = caps(rows, what.method, printed_attack(what.column))
    strongest = best(rows, what.method, what.on)
    shown = [
        [f"{letter:g}", f"{accuracy:.3f}", *_ours(i, error, printed, strongest)]
        for i, (letter, (accuracy, error)) in enumerate(what.printed.items())
    ]
    title = f"{study.name}, {what.method.title}, beside {_BESIDE}: error = {unit(what.on)}"
    return TextTable(title, heads, shown)


def _ours(i: int, paper: float, printed: list[Cap], strongest: list[Cap]) -> list[str]:
    """The i-th strength over all seeds."""
    at = [c.settings[i] for c in strongest]
    return [
        spread([s.accuracy for s in at]),
        f"{paper:.3f}",
        spread([c.settings[i].error for c in printed]),
        spread([s.error for s in at]),
        spread([min(s.error, s.blind) for s in at]),
        spread([s.blind for s in at]),
        ", ".join(dict.fromkeys(s.attack for s in at)),
    ]


def _plot(study: Study, rows: Rows, what: Ablation) -> Plot:
    values = list(what.printed)
    series = [
        Series("accuracy, paper", values, [v[0] for v in what.printed.values()]),
        Series("error, paper", values, [v[1] for v in what.printed.values()]),
    ]
    strongest = best(rows, what.method, what.on)
    curves = {
        "accuracy": (strongest, "accuracy"),
        "error as printed": (caps(rows, what.method, printed_attack(what.column)), "error"),
        "error of the best attack": (strongest, "error"),
        "blind guess": (strongest, "blind"),
    }
    for name, (seeds, figure) in curves.items():
        if seeds:
            found = [
                interval([float(getattr(c.settings[i], figure)) for c in seeds]) for i in range(len(values))
            ]
            series.append(Series(name, values, [f[0] for f in found], [f[1] for f in found]))
    title = f"{study.name}, {what.method.title}: accuracy and error against {what.letter}"
    return lines(title, what.letter, "share, MSE", series)
