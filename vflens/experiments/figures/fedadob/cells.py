"""Federations as cells, and CAP from their rows."""

import tempfile
from collections.abc import Sequence
from functools import partial
from statistics import median

from vflens.config import build_plugins
from vflens.datasets._resolve import dataset
from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.methods import (
    ATTACKS,
    FEATURES,
    NONE,
    UNDEFENDED,
    Against,
    Method,
    printed_attack,
)
from vflens.experiments.figures.fedadob.printed import CAPS
from vflens.experiments.figures.fedadob.studies import Study
from vflens.experiments.outcome.table import where
from vflens.experiments.pages.plots import Series
from vflens.experiments.run.any_experiment import AttackAt
from vflens.experiments.sweeps import cap
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.experiments.sweeps.sweep import refusals, run_cell
from vflens.numerics.measures.intervals import interval, spread
from vflens.numerics.theory.fedadob import Cap
from vflens.plugins.attack import FAIR_GUESS
from vflens.registry import ATTACKS as INSTALLED
from vflens.types import Phase
from vflens.words import counted

_LEARNED = 0.05  # accuracy above that of the active party alone


def cells(
    study: Study, methods: Sequence[Method], seed: int, attacks: Sequence[Against] = ATTACKS
) -> list[Cell]:
    """One federation per seed, defence and strength, each with all attacks that meet the defence: the first
    seed of all, then the second.
    """
    found = []
    for s in range(seed, seed + study.seeds):
        for method in methods:
            meets = [a for a in attacks if a.meets(method)]
            for value in method.values:
                place = {"model": study.name, "defense": method.title, "strength": value, "seed": s}
                settings = study.settings(s, meets, method, value)
                found.append(Cell({"place": place, "experiment": settings}, (place, settings)))
    return found


def run(
    options: FigureOptions, wanted: Sequence[Cell], scored_set: str = "predict"
) -> tuple[Rows, list[str]]:
    """The rows of ``wanted`` on ``scored_set``, each with "error" and "blind", a sentence on the
    errors' intervals over rows, one per refusal, and one on results that are absent.

    Raises:
        DataError: a data set cannot be read, before any federation is run on another one.
    """
    _check_data(wanted)
    with tempfile.TemporaryDirectory(prefix="vflens-figure-") as scratch:
        apart = [part for federation in wanted for part in _apart(federation)]
        found = options.pool.run(partial(run_cell, scratch=scratch), apart)
    rows = [row for part in found for row in part]
    scored = [cap.scored(r) for r in rows if not r.get("refused") and r["scored_set"] == scored_set]
    left = len(apart) - options.pool.finished(apart)
    lacking = [f"{left} of {counted(len(apart), 'result')} are not computed yet."] if left else []
    return scored, [*_over_rows(scored), *refusals(rows), *lacking]


def _apart(federation: Cell) -> list[Cell]:
    """The attacks of ``federation`` that read its training, then each other one by itself, so that what it
    finds is kept at once; all share one training. Training in rounds gives none: whole.
    """
    place, settings = federation.arguments
    attacks = settings["attacks"]
    if "horizontal" in settings:
        return [federation]
    built = build_plugins(INSTALLED, [AttackAt.model_validate(a) for a in attacks])
    reading = [a for a, (_, b) in zip(attacks, built, strict=True) if Phase.TRAIN in b.declared().phases]
    parts = [reading, *([a] for a in attacks if a not in reading)]
    each = [settings | {"attacks": part} for part in parts if part]
    trains = Cell(settings | {"attacks": []}).file()
    return [Cell({"place": place, "experiment": e}, (place, e, trains), trains) for e in each]


def _over_rows(scored: Rows) -> list[str]:
    """A sentence on the intervals over attacked rows, which one seed has too; no blind guess counts."""
    found = [r for r in scored if r.get("half_width") and r["error"] and r["attack"] != FAIR_GUESS]
    halves = [100 * r["half_width"] / r["error"] for r in found]
    return halves and [
        "Over the attacked rows the 95 % interval of an MSE is "
        f"± {median(halves):.0f} % of it in the median, ± {max(halves):.0f} % at most."
    ]


def _check_data(wanted: Sequence[Cell]) -> None:
    """Read the data sets where there are several: an absent one would show after days of cells on others."""
    names = sorted({settings["data"]["name"] for _, settings in (cell.arguments for cell in wanted)})
    if len(names) > 1:
        for name in names:
            dataset(name, {}).prepared()


def unlearned(rows: Rows) -> list[str]:
    """A sentence for each defence on its federations that learned nothing: means over seeds hide them."""
    found = []
    for model, defense in dict.fromkeys((r["model"], r["defense"]) for r in rows):
        gains = {
            (r["strength"], r["seed"]): r["accuracy_gain"]
            for r in rows
            if (r["model"], r["defense"]) == (model, defense)
        }
        lost = [f"{v:g} ({seed})" for (v, seed), gain in gains.items() if gain < _LEARNED]
        if lost:
            found.append(
                f"{model}, {defense}: {len(lost)} of {len(gains)} federations learn nothing, their accuracy "
                f"is that of the active party alone, which has no columns. Strengths (seed): "
                f"{', '.join(lost)}."
            )
    return found


def caps(rows: Rows, method: Method, attack: str) -> list[Cap]:
    """CAP of ``method`` against ``attack``, one for each seed in which it was scored at every strength."""
    return list(_by_seed(rows, method, attack).values())


def best(rows: Rows, method: Method, on: str, attacks: Sequence[Against] = ATTACKS) -> list[Cap]:
    """CAP against the best of ``attacks``; see :func:`vflens.experiments.sweeps.cap.best`."""
    return cap.best([_by_seed(rows, method, a.name) for a in attacks if a.on == on and a.meets(method)])


def _by_seed(rows: Rows, method: Method, attack: str) -> dict[int, Cap]:
    return cap.by_seed(rows, method.title, method.vary, method.values, attack)


def series(method: Method, seeds: Sequence[Cap]) -> Series:
    """Error over accuracy, strength by strength, from the CAPs of all seeds."""
    points = list(zip(*(c.settings for c in seeds), strict=True))
    errors = [interval([s.error for s in p]) for p in points]
    names = [f"{method.vary} = {p[0].strength:g}" if method.vary else method.title for p in points]
    x = [interval([s.accuracy for s in p])[0] for p in points]
    return Series(method.title, x, [e[0] for e in errors], [e[1] for e in errors], names=names)


def missed(attack: str, errors: Sequence[float], paper: float, figure: str = "error") -> str:
    """A sentence where the ``figure`` of ``attack`` without a defence is larger, seed by seed, than the
    ``paper`` says: with it a page begins. Else "".
    """
    mean, half = interval(errors) if errors else (0.0, 0.0)
    if mean - half <= paper:
        return ""
    return (
        f"{attack} as printed has {figure} {spread(errors)} without a defence here, {paper:.3f} in the "
        "paper: not all of its error behind a defence is the defence's. "
    )


def missed_undefended(model: str, rows: Rows, columns: Sequence[str], beside: str) -> str:
    """:func:`missed` of the paper's attack in each of ``columns`` on our ``model``, by its CAP, beside that
    which the paper prints of ``beside`` without a defence.
    """
    own, text = where(rows, model=model), []
    for column in columns:
        found = [c.value for c in caps(own, NONE, printed_attack(column))]
        text.append(missed(f"{model}: {column}", found, CAPS[column, beside, UNDEFENDED].mean, "CAP"))
    return "".join(text)


def unit(on: str) -> str:
    """The unit of errors."""
    return "MSE per pixel, in [0, 1]" if on == FEATURES else "share of wrong labels"
