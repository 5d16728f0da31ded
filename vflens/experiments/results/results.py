"""What runs recorded, as data: each attack's error beside its blind baseline, and the utility of a run.

A result is an attack's mean squared error per feature, in units of columns scaled to [0, 1], that stands
beside the best blind guess for the same rows; an error without one is no result. An attack is better
than blind when even the upper end of its 95 % interval (1.96 standard errors over rows) lies below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from vflens.errors import PluginError
from vflens.experiments.results.folders import Metric, Run
from vflens.registry import ATTACKS
from vflens.score.service import MIN_ROWS

BLIND_GUESSES = {
    "zero": "all zeros",
    "half": "one half everywhere",
    "random": "uniformly random values",
    "column_means": "the column means",
}
_UTILITY = (
    *("accuracy", "accuracy_alone", "accuracy_released", "auc", "auc_alone", "auc_released"),
    *("mean_kl", "argmax_kept"),
)


@dataclass(frozen=True)
class Result:
    """One attack's error on ``rows`` rows of ``target``, beside the least blind error on the same rows.

    ``half_width`` is that of the 95 % interval, None when no standard error was recorded; ``unusable``
    the share of rows that the attack itself flagged.
    """

    attack: str
    target: str
    scored_set: str
    rows: int
    mse: float
    half_width: float | None
    blind: float
    blind_guess: str
    unusable: float | None

    @property
    def relative(self) -> float:
        """Error over blind error: 0 is exact, 1 no better than blind; infinite where blind is exact."""
        return self.mse / self.blind if self.blind else math.inf

    @property
    def better(self) -> bool:
        """Whether the attack beats the best blind guess beyond chance."""
        return self.mse + (self.half_width or 0.0) < self.blind


@dataclass(frozen=True)
class ColumnError:
    """An attack's error on one column beside the column's best blind guess."""

    column: str
    mse: float
    blind: float

    @property
    def relative(self) -> float:
        """As :attr:`Result.relative`."""
        return self.mse / self.blind if self.blind else math.inf


@lru_cache(maxsize=64)  # a report asks for every panel and sentence
def results(run: Run) -> tuple[Result, ...]:
    """Every scored milestone of ``run``; where adversary and target both hold a figure, the target's."""
    errors = _first(run, "mse")
    affine = {attack for attack in {m.attack for m in errors.values()} if up_to_affine(attack)}
    stderr, unusable, blind = _first(run, "mse_stderr"), _first(run, "unusable"), _best_blind(run)
    return tuple(
        Result(
            *(m.attack, m.target, m.scored_set, m.rows, m.value),
            half_width=1.96 * stderr[key].value if key in stderr else None,
            blind=blind[key[1:]].value,
            blind_guess=BLIND_GUESSES.get(blind[key[1:]].attack, blind[key[1:]].attack),
            unusable=unusable[key].value if key in unusable else None,
        )
        for key, m in errors.items()
        if key[1:] in blind and math.isfinite(m.value) and m.attack not in affine
    )


def up_to_affine(attack: str) -> bool:
    """Whether the values of ``attack`` are the columns up to an affine map: their plain MSE means nothing."""
    try:
        return bool(ATTACKS.get(attack).up_to_affine)  # type: ignore[attr-defined]
    except PluginError:
        return False


def explained(run: Run) -> dict[tuple[str, str], float]:
    """(attack, target) → R² on training rows after the best affine map, of the attacks that need one."""
    found = _first(run, "affine_r2").values()
    return {(m.attack, m.target): m.value for m in found if up_to_affine(m.attack) and math.isfinite(m.value)}


def final(run: Run) -> tuple[Result, ...]:
    """The last milestone of each attack on each target and scored set, the most successful first."""
    last = {(r.attack, r.target, r.scored_set): r for r in sorted(results(run), key=lambda r: r.rows)}
    return tuple(sorted(last.values(), key=lambda r: (r.relative, r.mse)))


def column_errors(run: Run, result: Result) -> tuple[ColumnError, ...]:
    """The errors of ``result`` column by column, in the target's order, where a blind error stands beside."""

    def same(m: Metric) -> bool:
        return (m.target, m.scored_set, m.rows) == (result.target, result.scored_set, result.rows)

    blind = {m.column: m.value for m in run.metrics("column_blind_mse") if same(m)}
    errors = {m.column: m.value for m in run.metrics("column_mse") if same(m) and m.attack == result.attack}
    return tuple(ColumnError(c, e, blind[c]) for c, e in errors.items() if c in blind and math.isfinite(e))


@dataclass(frozen=True)
class Leak:
    """A column that ``attack`` reconstructs though its error over all columns may be no better than blind."""

    attack: str
    error: ColumnError


def leaking_columns(run: Run, target: str) -> tuple[Leak, ...]:
    """The columns of ``target`` where some attack errs by less than half of the column's best blind guess,
    worst first.

    Half, because a column has no interval of its own and many are looked at; fewer than 50 rows say nothing.
    """
    least: dict[str, Leak] = {}
    for r in final(run):
        for e in column_errors(run, r) if r.target == target and r.rows >= MIN_ROWS else ():
            if e.relative < 0.5 and (e.column not in least or e.relative < least[e.column].error.relative):
                least[e.column] = Leak(r.attack, e)
    return tuple(sorted(least.values(), key=lambda leak: leak.error.relative))


@dataclass(frozen=True)
class ColumnBits:
    """Entropy in bits of a finite column: ``blind`` H(X), and H(X | X̂) of an attack."""

    column: str
    attack: str
    bits: float
    blind: float


def column_bits(run: Run, target: str) -> tuple[ColumnBits, ...]:
    """For each finite column of ``target`` the attack that leaves the fewest bits, at the last milestone."""
    last = max((r.rows for r in results(run) if r.target == target), default=0)
    here = [m for m in run.metrics("column_conditional_entropy") if (m.target, m.rows) == (target, last)]
    blind = {m.column: m.value for m in run.metrics("column_entropy") if (m.target, m.rows) == (target, last)}
    best: dict[str, Metric] = {}
    for m in here:
        if m.column in blind and (m.column not in best or m.value < best[m.column].value):
            best[m.column] = m
    return tuple(ColumnBits(c, m.attack, m.value, blind[c]) for c, m in best.items())


def utility(run: Run) -> dict[str, float]:
    """What the federation is good for: accuracy and AUC, alone and gained, mean KL (nats), arg-max kept."""
    found: dict[str, float] = {}
    for name in _UTILITY:
        if (value := run.value(name)) is not None:
            found[name] = value
        together = name.removesuffix("_alone")
        if together != name and together in found and name in found:
            found[f"{together}_gain"] = found[together] - found[name]
    return found


def releases(run: Run) -> list[dict[str, object]]:
    """Each released table: its target, the errors by cell that its noise is claimed to leave, what attacks
    reached.
    """
    linear = {m.target: m.value for m in run.metrics("released_linear")}
    bounds = {m.target: m.value for m in run.metrics("released_bound")}
    reached = [r for r in final(run) if r.attack in ("released_table", "shrunk_table")]
    return [
        {
            "target": target,
            "bound": bound,
            "linear": linear.get(target),
            "errors": [(r.attack, r.mse) for r in reached if r.target == target],
        }
        for target, bound in sorted(bounds.items())
    ]


def privacy(run: Run) -> list[dict[str, object]]:
    """Each party whose noise is counted: how often a row was released in each phase, its total ε (None: none
    can be stated), their δ, the budget.
    """
    names = ("training_releases", "training_epsilon", "prediction_releases", "prediction_epsilon")
    found = {name: {m.target: m.value for m in run.metrics(name)} for name in names}
    epsilons = {
        (name, party): None if math.isnan(value) else value
        for name in ("training_epsilon", "prediction_epsilon")
        for party, value in found[name].items()
    }
    limits = {p.name: p.config.get("limits", {}) for p in run.parties}
    return [
        {
            "party": party,
            "releases": found["training_releases"].get(party, 0),
            "epsilon": epsilons.get(("training_epsilon", party)),
            "predictions": found["prediction_releases"].get(party, 0),
            "prediction": epsilons.get(("prediction_epsilon", party)),
            "delta": limits.get(party, {}).get("delta"),
            "budget": limits.get(party, {}).get("epsilon"),
        }
        for party in sorted({party for _, party in epsilons})
    ]


@dataclass(frozen=True)
class LabelResult:
    """Shares of the labels of ``rows`` rows of ``scored_set`` that an attack in the party ``adversary`` and
    the blind guess name rightly; AUC of its beliefs.
    """

    attack: str
    adversary: str
    scored_set: str
    rows: int
    accuracy: float
    auc: float
    blind: float

    @property
    def relative(self) -> float:
        """Share named wrongly over that of the blind guess: 0 is exact, 1 no better than blind; infinite
        where blind is exact.
        """
        return (1 - self.accuracy) / (1 - self.blind) if self.blind < 1 else math.inf

    @property
    def kind(self) -> str:
        """Which rows they are: "training" or "prediction"."""
        return {"train": "training", "predict": "prediction"}[self.scored_set]


def label_results(run: Run) -> tuple[LabelResult, ...]:
    """What the active party scored of attacks on its labels, the most successful first."""
    blind = {(m.adversary, m.scored_set, m.rows): m.value for m in run.metrics("blind_label_accuracy")}
    auc = {(m.attack, m.adversary, m.scored_set, m.rows): m.value for m in run.metrics("label_auc")}
    found = {
        key: LabelResult(*key, m.value, auc[key], blind[key[1:]])
        for m in run.metrics("label_accuracy")
        if (key := (m.attack, m.adversary, m.scored_set, m.rows)) in auc and key[1:] in blind
    }
    return tuple(sorted(found.values(), key=lambda r: -r.accuracy))


def targets(runs: Sequence[Run]) -> list[str]:
    """Every target that some attack was scored on, in order of appearance."""
    return list(dict.fromkeys(r.target for run in runs for r in final(run)))


def ranking(runs: Sequence[Run]) -> dict[str, int]:
    """The rank of each attack over all runs, the most successful first."""
    everything = sorted((r for run in runs for r in final(run)), key=lambda r: r.relative)
    return {attack: rank for rank, attack in enumerate(dict.fromkeys(r.attack for r in everything))}


def _first(run: Run, metric: str) -> dict[tuple[str, str, str, int], Metric]:
    found: dict[tuple[str, str, str, int], Metric] = {}
    for m in run.metrics(metric):
        found.setdefault((m.attack, m.target, m.scored_set, m.rows), m)
    return found


def _best_blind(run: Run) -> dict[tuple[str, str, int], Metric]:
    best: dict[tuple[str, str, int], Metric] = {}
    for m in _first(run, "blind_mse").values():
        key = (m.target, m.scored_set, m.rows)
        if math.isfinite(m.value) and (key not in best or m.value < best[key].value):
            best[key] = m
    return best
