"""Results of runs as data: each attack's error beside its blind baseline, and the utility of a run.

A result is an attack's mean squared error per feature, in units of columns scaled to [0, 1], with that of the
best blind guess on the same rows. An error without a blind one is no result. An attack is better than blind
if the upper end of its 95 % interval (1.96 standard errors over rows) is below the blind error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.numerics.measures.intervals import least_first, over_blind
from vflens.plugins.attack import installed_attack, is_blind
from vflens.protocol.acts import together
from vflens.score.service import MIN_ROWS
from vflens.storage.metrics import Name
from vflens.types import Phase

BLIND_GUESSES = {
    "zero": "all zeros",
    "half": "one half everywhere",
    "random": "uniformly random values",
    "column_means": "the column means",
    "imputation": "imputation from the adversary's own columns",
}
#: What tells of a run's utility, in words.
UTILITY: Mapping[str, str] = {
    **{Name.ACCURACY: "accuracy", Name.ACCURACY_ALONE: "accuracy alone", "accuracy_gain": "accuracy gained"},
    Name.ACCURACY_RELEASED: "accuracy, released tables",
    Name.ACCURACY_CLEAR: "accuracy, trained in the clear",
    **{Name.AUC: "AUC", Name.AUC_ALONE: "AUC alone", "auc_gain": "AUC gained"},
    **{Name.AUC_RELEASED: "AUC, released tables", Name.AUC_CLEAR: "AUC, trained in the clear"},
    **{Name.R2: "R²", Name.R2_ALONE: "R² alone", "r2_gain": "R² gained"},
    **{Name.R2_RELEASED: "R², released tables", Name.R2_CLEAR: "R², trained in the clear"},
    **{Name.RMSE: "RMSE in the label's unit", Name.RMSE_ALONE: "RMSE alone"},
    **{Name.RMSE_RELEASED: "RMSE, released tables", Name.RMSE_CLEAR: "RMSE, trained in the clear"},
    **{Name.MEAN_KL: "mean KL, nats", Name.ARGMAX_KEPT: "arg-max kept"},
}


@dataclass(frozen=True)
class Result:
    """One attack's error on ``rows`` rows of ``target``, and the least blind error on the same rows.

    ``half_width`` is that of the 95 % interval, None without a recorded standard error; ``unusable`` is the
    share of rows that the attack flagged. ``psnr`` (dB) is that of ``mse``, ``ssim`` a mean over images,
    beside the largest of blind guesses; None if the target holds no images. ``granted``: what the attack
    read that no round sends, a server's only by a client's grant. ``adversary``: who submitted the estimate.
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
    psnr: float | None = None
    ssim: float | None = None
    blind_psnr: float | None = None
    blind_ssim: float | None = None
    granted: str = ""
    adversary: str = ""

    @property
    def relative(self) -> float:
        """:func:`over_blind` of the errors."""
        return over_blind(self.mse, self.blind)

    @property
    def better(self) -> bool:
        """Whether the attack is better than the best blind guess beyond chance."""
        return self.mse + (self.half_width or 0.0) < self.blind


@dataclass(frozen=True)
class ColumnError:
    """The error of ``attack`` on one column beside the column's best blind guess."""

    column: str
    mse: float
    blind: float
    attack: str = ""

    @property
    def relative(self) -> float:
        """See :attr:`Result.relative`."""
        return over_blind(self.mse, self.blind)


@lru_cache(maxsize=64)  # a report needs it for every panel and sentence
def results(run: PartyRuns) -> tuple[Result, ...]:
    """Every scored milestone of ``run``; of two figures, the adversary's and the target's, the target's."""
    errors = _first(run, Name.MSE) | _first(run, Name.MATCHED_MSE)
    affine = {attack for attack in {m.attack for m in errors.values()} if up_to_affine(attack)}
    stderr, unusable = _first(run, Name.MSE_STDERR), _first(run, Name.UNUSABLE)
    psnr, ssim = _first(run, Name.PSNR), _first(run, Name.SSIM)
    guesses = {adversary: _best_blind(run, adversary) for adversary in {m.adversary for m in errors.values()}}
    granted = {(m.attack, m.target): m.detail for m in run.metrics(Name.GRANTED)}
    blind_psnr, blind_ssim = _largest(run, Name.BLIND_PSNR), _largest(run, Name.BLIND_SSIM)
    return tuple(
        Result(
            *(m.attack, m.target, m.scored_set, m.rows, m.value),
            half_width=half_width(stderr[key].value) if key in stderr else None,
            blind=blind.value,
            blind_guess=BLIND_GUESSES.get(blind.attack, blind.attack),
            unusable=unusable[key].value if key in unusable else None,
            psnr=psnr[key].value if key in psnr else None,
            ssim=ssim[key].value if key in ssim else None,
            blind_psnr=blind_psnr.get(key[1:]),
            blind_ssim=blind_ssim.get(key[1:]),
            granted=granted.get((m.attack, m.target), ""),
            adversary=m.adversary,
        )
        for key, m in errors.items()
        if m.attack not in affine and math.isfinite(m.value)
        if (blind := guesses[m.adversary].get(key[1:]))
    )


def is_baseline(guess: Metric, adversary: str) -> bool:
    """Whether ``guess`` is of a blind guess that ``adversary`` can make: what parties that collude guess from
    all their columns stands beside attacks in which all of them take part.
    """
    return is_blind(guess.attack) and _can_make(guess, adversary)


def _can_make(guess: Metric, adversary: str) -> bool:
    """Whether all who made ``guess`` are of ``adversary``, if they are several."""
    they = together(guess.adversary)
    return len(they) == 1 or set(they) <= set(together(adversary))


def half_width(stderr: float) -> float:
    """Half the width of the 95 % interval of a mean with this standard error."""
    return 1.96 * stderr


def up_to_affine(attack: str) -> bool:
    """Whether the values of ``attack`` are the columns up to an affine map: plain MSE has no meaning."""
    plugin = installed_attack(attack)
    return plugin is not None and plugin.up_to_affine


def explained(run: PartyRuns) -> dict[tuple[str, str], float]:
    """(attack, target) → R² on training rows after the best affine map, for attacks that need one."""
    found = _first(run, Name.AFFINE_R2).values()
    return {(m.attack, m.target): m.value for m in found if up_to_affine(m.attack) and math.isfinite(m.value)}


def final(run: PartyRuns) -> tuple[Result, ...]:
    """The last milestone per attack, target and scored set, the most successful first."""
    last = {(r.attack, r.target, r.scored_set): r for r in sorted(results(run), key=lambda r: r.rows)}
    return tuple(sorted(last.values(), key=lambda r: (least_first(r.relative), r.mse)))


@dataclass(frozen=True)
class LargestLeak:
    """What ``attack`` takes of ``target``'s columns, more than any other attack.

    ``share`` of the best blind guess's error, 1 an exact copy and 0 no better; it is that of ``result``, or
    where there is none R² on training rows after the best affine map.
    """

    attack: str
    target: str
    share: float
    result: Result | None = None

    @property
    def of_training(self) -> bool:
        """Whether it is of training rows."""
        return self.result is None or self.result.scored_set == Phase.TRAIN


def largest_leaks(run: PartyRuns) -> tuple[LargestLeak, ...]:
    """The largest leak of each target, the largest of all first; of two equal ones that with a result."""
    found: dict[str, LargestLeak] = {}
    for leak in sorted(_leaks(run), key=_by_share):
        found.setdefault(leak.target, leak)
    return tuple(found.values())


def beside(run: PartyRuns, leak: LargestLeak) -> Result | None:
    """Where ``leak`` is of training rows, the most successful attack on its target's prediction rows."""
    predicted = (r for r in final(run) if (r.target, r.scored_set) == (leak.target, Phase.PREDICT))
    return next(predicted, None) if leak.of_training else None


def _leaks(run: PartyRuns) -> Iterator[LargestLeak]:
    for r in final(run):
        yield LargestLeak(r.attack, r.target, 1 - r.relative if r.better else 0.0, r)
    for (attack, target), r2 in explained(run).items():
        yield LargestLeak(attack, target, max(r2, 0.0))


def _by_share(leak: LargestLeak) -> tuple[float, bool, float]:
    relative = least_first(leak.result.relative) if leak.result else 0.0
    return -round(leak.share, 3), leak.result is None, relative


def column_errors(run: PartyRuns, result: Result) -> tuple[ColumnError, ...]:
    """The errors of ``result`` column by column, in the target's order, if there is a blind error."""

    def same(m: Metric) -> bool:
        return (m.target, m.scored_set, m.rows) == (result.target, result.scored_set, result.rows)

    names = [c.name for c in run.columns_of(result.target)]
    blind: dict[str, float] = {}
    errors: dict[str, float] = {}
    for m in filter(same, run.metrics(Name.COLUMN_BLIND_MSE)):
        blind |= m.by_column(names)
    for m in filter(same, run.metrics(Name.COLUMN_MSE)):
        found = m.by_column(names)
        errors |= found if m.attack == result.attack else {}
        if is_baseline(m, result.adversary):
            blind |= {c: min(e, blind[c]) for c, e in found.items() if c in blind}
    return tuple(
        ColumnError(c, e, blind[c], result.attack)
        for c, e in errors.items()
        if c in blind and math.isfinite(e)
    )


def leaking_columns(run: PartyRuns, target: str, scored_set: str = "") -> tuple[ColumnError, ...]:
    """The columns of ``target`` with an error of less than half that of the best blind guess, worst first;
    those of the rows of ``scored_set``, or of any.

    Half, because a column has no interval and there are many columns; fewer than 50 rows do not count.
    """
    least: dict[str, ColumnError] = {}
    for r in final(run):
        if r.target != target or r.rows < MIN_ROWS or scored_set not in ("", r.scored_set):
            continue
        for e in column_errors(run, r):
            if e.relative < 0.5 and (e.column not in least or e.relative < least[e.column].relative):
                least[e.column] = e
    return tuple(sorted(least.values(), key=lambda e: e.relative))


def utility(run: PartyRuns) -> dict[str, float]:
    """Accuracy and AUC, of a number R² and RMSE, alone, gained, of a protected run's clear twin; mean KL
    (nats), arg-max kept; means over clients.
    """
    found: dict[str, float] = {}
    for name in UTILITY:
        together = name.removesuffix("_gain")
        if together == name and (value := _mean(run, Name[name.upper()])) is not None:
            found[name] = value
        elif together != name and {together, f"{together}_alone"} <= found.keys():
            found[name] = found[together] - found[f"{together}_alone"]
    return found


def worth(utility: Mapping[str, float]) -> Name:
    """The name of the first measure in ``utility``: R² of a number, else accuracy; :data:`UTILITY` has the
    words.
    """
    return Name.R2 if Name.R2 in utility else Name.ACCURACY


def _mean(run: PartyRuns, metric: Name) -> float | None:
    """The last figure called ``metric`` of each party that measured it, on average."""
    values = list(_by_party(run, metric).values())
    return sum(values) / len(values) if values else None


def _by_party(run: PartyRuns, metric: Name) -> dict[str, float]:
    """Party → its last figure called ``metric``, of those that measured it."""
    return {p.name: m.value for p in run.parties for m in p.metrics if m.name == metric}


class ClientAccuracy(NamedTuple):
    """The accuracy of ``client`` on its own prediction rows: with the others, and by a model of its own rows
    ``alone``.
    """

    client: str
    accuracy: float
    alone: float


def clients(run: PartyRuns) -> list[ClientAccuracy]:
    """Each client of a horizontal run, in name order."""
    together, alone = _by_party(run, Name.ACCURACY), _by_party(run, Name.ACCURACY_ALONE)
    return [ClientAccuracy(name, together[name], alone[name]) for name in run.alike if name in alone]


class NotRun(NamedTuple):
    """An ``attack`` of ``adversary`` on ``target`` that gave no estimate, and the reason."""

    attack: str
    adversary: str
    target: str
    reason: str


def skipped(run: PartyRuns) -> list[NotRun]:
    """The attacks that lacked knowledge."""
    return _not_run(run, Name.SKIPPED)


def failed(run: PartyRuns) -> list[NotRun]:
    """The attacks that failed: their plug-ins raised an error or returned no estimate."""
    return _not_run(run, Name.FAILED)


def _not_run(run: PartyRuns, outcome: Name) -> list[NotRun]:
    """Each once, on whatever rows."""
    noted = (NotRun(m.attack, m.adversary, m.target, m.detail) for m in run.metrics(outcome))
    return list(dict.fromkeys(noted))


def _first(run: PartyRuns, metric: Name) -> dict[tuple[str, str, str, int], Metric]:
    found: dict[tuple[str, str, str, int], Metric] = {}
    for m in run.metrics(metric):
        found.setdefault((m.attack, m.target, m.scored_set, m.rows), m)
    return found


def _largest(run: PartyRuns, metric: Name) -> dict[tuple[str, str, int], float]:
    best: dict[tuple[str, str, int], float] = {}
    for m in _first(run, metric).values():
        key = (m.target, m.scored_set, m.rows)
        best[key] = max(m.value, best.get(key, -math.inf))
    return best


def _best_blind(run: PartyRuns, adversary: str) -> dict[tuple[str, str, int], Metric]:
    """(target, scored set, rows) → the least error of a guess; attacks that are blind stand among them."""
    best: dict[tuple[str, str, int], Metric] = {}
    errors = _first(run, Name.MSE).values()
    blind = set(filter(is_blind, {m.attack for m in errors}))
    imputed = (m for m in errors if m.attack in blind and _can_make(m, adversary))
    guessed = _first(run, Name.BLIND_MSE) | _first(run, Name.BLIND_MATCHED_MSE)
    for m in (*guessed.values(), *imputed):
        key = (m.target, m.scored_set, m.rows)
        if math.isfinite(m.value) and (key not in best or m.value < best[key].value):
            best[key] = m
    return best
