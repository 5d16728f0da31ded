"""Results of runs as data: each attack's error beside its blind baseline.

A result is an attack's mean squared error per feature, in units of columns scaled to [0, 1], with that of the
best blind guess on the same rows. An error without a blind one is no result. An attack is better than blind
if the upper end of its 95 % interval (1.96 standard errors over rows) is below the blind error.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.numerics.measures.intervals import half_width, least_first, over_blind
from vflens.plugins.attack import is_blind, up_to_affine
from vflens.protocol.acts import together
from vflens.score.service import MIN_ROWS
from vflens.storage.metrics import Name

BLIND_GUESSES = {
    "zero": "all zeros",
    "half": "one half everywhere",
    "random": "uniformly random values",
    "column_means": "the column means",
    "imputation": "imputation from the adversary's own columns",
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


def explained(run: PartyRuns) -> dict[tuple[str, str], float]:
    """(attack, target) → R² on training rows after the best affine map, for attacks that need one."""
    found = _first(run, Name.AFFINE_R2).values()
    return {(m.attack, m.target): m.value for m in found if up_to_affine(m.attack) and math.isfinite(m.value)}


def final(run: PartyRuns) -> tuple[Result, ...]:
    """The last milestone per attack, target and scored set, the most successful first."""
    last = {(r.attack, r.target, r.scored_set): r for r in sorted(results(run), key=lambda r: r.rows)}
    return tuple(sorted(last.values(), key=lambda r: (least_first(r.relative), r.mse)))


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
