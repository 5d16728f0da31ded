"""FedAdOb's CAP of swept defences: accuracy times error of an attack, averaged over the strengths.

Of a numeric label R² takes the place of accuracy.
"""

from collections.abc import Mapping, Sequence

from vflens.experiments.outcome.finding import Quantity
from vflens.experiments.outcome.table import errors_of, quantity_of, where
from vflens.experiments.pages.drawing import TextTable
from vflens.experiments.results.utility import UTILITY, worth
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep_page import attacked
from vflens.numerics.measures.intervals import spread
from vflens.numerics.theory.fedadob import Cap, DefenseStrength, against_best
from vflens.storage.metrics import Name
from vflens.types import Document, Facts

WORDS = (
    "CAP is the mean over the grid of strengths of accuracy times error (FedAdOb, equation (13)): larger is "
    "better for the defence. It depends on the grid. Best attack: at each strength the one of least error. "
    "Of a numeric label R² stands for accuracy (ours), 0 where it is negative. "
    "An adversary can guess blindly instead: min(best, blind)."
)


def scored(row: Facts) -> Document:
    """``row`` with "error" and "blind" of one unit, MSE or the share of wrong labels; of a number R² stands
    as its "accuracy", 0 where it is negative.
    """
    error, blind = errors_of(row)
    number = {"accuracy": max(row[Name.R2], 0.0)} if row.get(Name.R2) is not None else {}
    return {**row, "error": error, "blind": blind, **number}


def by_seed(
    rows: Rows, defense: str, parameter: str, strengths: Sequence[float | None], attack: str
) -> dict[int, Cap]:
    """CAP of ``defense`` against ``attack`` by seed: of those in which it was scored at every strength.

    Args:
        rows: of :func:`scored`, of one target and scored set.
        defense: its title.
        parameter: what its strengths vary.
        strengths: the grid; None for a defence without one.
        attack: its name.
    """
    own = where(rows, defense=defense, attack=attack)
    found = {}
    for seed in sorted({r["seed"] for r in own}):
        at = {r["strength"]: r for r in own if r["seed"] == seed}
        if set(strengths) <= at.keys():
            settings = [
                DefenseStrength(v or 0.0, at[v]["accuracy"], at[v]["error"], at[v]["blind"], attack=attack)
                for v in strengths
            ]
            found[seed] = Cap(parameter, tuple(settings))
    return found


def best(each: Sequence[Mapping[int, Cap]]) -> list[Cap]:
    """CAP against the best of several attacks, strength by strength, one for each seed: of the attacks that
    were scored in it at every strength.
    """
    seeds = sorted({seed for found in each for seed in found})
    return [against_best(found[seed] for found in each if seed in found) for seed in seeds]


def tables(rows: Rows, varied: Mapping[str, str]) -> list[TextTable]:
    """CAP of every defence, for each target's columns or labels and scored set whose cells all have an
    accuracy or R².

    Args:
        rows: of a sweep.
        varied: title of a defence → the parameter that is its strength; without one it has no entry.
    """
    subjects: dict[str, Rows] = {}
    for r in rows:
        if quantity_of(r) in (Quantity.ALL, Quantity.LABELS):
            subjects.setdefault(attacked(r), []).append(scored(r))
    found = []
    for subject, here in subjects.items():
        if all(r.get("accuracy") is not None for r in here):
            unit = "MSE per column" if quantity_of(here[0]) is Quantity.ALL else "share of wrong labels"
            found.append(_table(f"{subject}: CAP, error = {unit}", here, varied))
    return found


def _table(title: str, rows: Rows, varied: Mapping[str, str]) -> TextTable:
    attacks = list(dict.fromkeys(r["attack"] for r in rows))
    defenses = dict.fromkeys(r["defense"] for r in rows)
    heads = [
        "defence",
        "grid",
        UTILITY[worth(rows[0])],
        *attacks,
        "best attack",
        "min(best, blind)",
        "blind alone",
    ]
    return TextTable(title, heads, [_line(d, attacks, rows, varied.get(d, "")) for d in defenses])


def _line(defense: str, attacks: Sequence[str], rows: Rows, parameter: str) -> list[str]:
    strengths = list(dict.fromkeys(r["strength"] for r in where(rows, defense=defense)))
    each = [by_seed(rows, defense, parameter, strengths, a) for a in attacks]
    strongest = best(each)
    grid = f"{parameter} = {', '.join(f'{s:g}' for s in strengths)}" if parameter else "–"
    return [
        *(defense, grid, spread([c.accuracy for c in strongest])),
        *(spread([c.value for c in found.values()]) for found in each),
        spread([c.value for c in strongest]),
        spread([c.or_blind for c in strongest]),
        spread([c.blind for c in strongest]),
    ]
