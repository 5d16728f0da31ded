"""Results of runs as data: each attack's error beside its blind baseline, and the utility of a run.

A result is an attack's mean squared error per feature, in units of columns scaled to [0, 1], with that of the
best blind guess on the same rows. An error without a blind one is no result. An attack is better than blind
if the upper end of its 95 % interval (1.96 standard errors over rows) is below the blind error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from vflens.experiments.results.folders import Metric, Run
from vflens.plugins.attack import installed_attack
from vflens.score.service import MIN_ROWS
from vflens.types import Role

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
    """One attack's error on ``rows`` rows of ``target``, and the least blind error on the same rows.

    ``half_width`` is that of the 95 % interval, None without a recorded standard error; ``unusable`` is the
    share of rows that the attack flagged. ``psnr`` (dB) is that of ``mse``, ``ssim`` a mean over images,
    beside the largest of blind guesses; None if the target holds no images. ``granted``: what the attack
    read that no round sends, a server's only by a client's grant.
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

    @property
    def relative(self) -> float:
        """Error over blind error: 0 is exact, 1 no better than blind; infinite if blind is exact."""
        return self.mse / self.blind if self.blind else math.inf

    @property
    def better(self) -> bool:
        """Whether the attack is better than the best blind guess beyond chance."""
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


@lru_cache(maxsize=64)  # a report needs it for every panel and sentence
def results(run: Run) -> tuple[Result, ...]:
    """Every scored milestone of ``run``; of two figures, the adversary's and the target's, the target's."""
    errors = _first(run, "mse") | _first(run, "matched_mse")
    affine = {attack for attack in {m.attack for m in errors.values()} if up_to_affine(attack)}
    stderr, unusable, blind = _first(run, "mse_stderr"), _first(run, "unusable"), _best_blind(run)
    psnr, ssim = _first(run, "psnr"), _first(run, "ssim")
    granted = {(m.attack, m.target): m.column for m in run.metrics("granted")}
    blind_psnr, blind_ssim = _largest(run, "blind_psnr"), _largest(run, "blind_ssim")
    return tuple(
        Result(
            *(m.attack, m.target, m.scored_set, m.rows, m.value),
            half_width=half_width(stderr[key].value) if key in stderr else None,
            blind=blind[key[1:]].value,
            blind_guess=BLIND_GUESSES.get(blind[key[1:]].attack, blind[key[1:]].attack),
            unusable=unusable[key].value if key in unusable else None,
            psnr=psnr[key].value if key in psnr else None,
            ssim=ssim[key].value if key in ssim else None,
            blind_psnr=blind_psnr.get(key[1:]),
            blind_ssim=blind_ssim.get(key[1:]),
            granted=granted.get((m.attack, m.target), ""),
        )
        for key, m in errors.items()
        if key[1:] in blind and math.isfinite(m.value) and m.attack not in affine
    )


def half_width(stderr: float) -> float:
    """Half the width of the 95 % interval of a mean with this standard error."""
    return 1.96 * stderr


def up_to_affine(attack: str) -> bool:
    """Whether the values of ``attack`` are the columns up to an affine map: plain MSE has no meaning."""
    plugin = installed_attack(attack)
    return plugin is not None and plugin.up_to_affine


def explained(run: Run) -> dict[tuple[str, str], float]:
    """(attack, target) → R² on training rows after the best affine map, for attacks that need one."""
    found = _first(run, "affine_r2").values()
    return {(m.attack, m.target): m.value for m in found if up_to_affine(m.attack) and math.isfinite(m.value)}


def final(run: Run) -> tuple[Result, ...]:
    """The last milestone per attack, target and scored set, the most successful first."""
    last = {(r.attack, r.target, r.scored_set): r for r in sorted(results(run), key=lambda r: r.rows)}
    return tuple(sorted(last.values(), key=lambda r: (r.relative, r.mse)))


def column_errors(run: Run, result: Result) -> tuple[ColumnError, ...]:
    """The errors of ``result`` column by column, in the target's order, if there is a blind error."""

    def same(m: Metric) -> bool:
        return (m.target, m.scored_set, m.rows) == (result.target, result.scored_set, result.rows)

    infos = run.infos()
    names = [c.name for c in infos[result.target].columns] if result.target in infos else []
    blind: dict[str, float] = {}
    errors: dict[str, float] = {}
    for m in filter(same, run.metrics("column_blind_mse")):
        blind |= m.by_column(names)
    for m in filter(same, run.metrics("column_mse")):
        errors |= m.by_column(names) if m.attack == result.attack else {}
    return tuple(ColumnError(c, e, blind[c]) for c, e in errors.items() if c in blind and math.isfinite(e))


@dataclass(frozen=True)
class Leak:
    """A column that ``attack`` reconstructs; its error over all columns may be no better than blind."""

    attack: str
    error: ColumnError


def leaking_columns(run: Run, target: str) -> tuple[Leak, ...]:
    """The columns of ``target`` with an error of less than half that of the best blind guess, worst first.

    Half, because a column has no interval and there are many columns; fewer than 50 rows do not count.
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
    """For each finite column of ``target`` the attack that leaves the fewest bits, at its last milestone."""
    last = max((r.rows for r in results(run) if r.target == target), default=0)
    here = [m for m in run.metrics("column_conditional_entropy") if (m.target, m.rows) == (target, last)]
    blind = {m.column: m.value for m in run.metrics("column_entropy") if (m.target, m.rows) == (target, last)}
    best: dict[str, Metric] = {}
    for m in here:
        if m.column in blind and (m.column not in best or m.value < best[m.column].value):
            best[m.column] = m
    return tuple(ColumnBits(c, m.attack, m.value, blind[c]) for c, m in best.items())


def utility(run: Run) -> dict[str, float]:
    """Utility: accuracy and AUC, alone and gained, mean KL (nats), arg-max kept; means over clients."""
    found: dict[str, float] = {}
    for name in _UTILITY:
        if (value := _mean(run, name)) is not None:
            found[name] = value
        together = name.removesuffix("_alone")
        if together != name and together in found and name in found:
            found[f"{together}_gain"] = found[together] - found[name]
    return found


def _mean(run: Run, metric: str) -> float | None:
    """The last figure called ``metric`` of each party that measured it, on average."""
    values = list(_by_party(run, metric).values())
    return sum(values) / len(values) if values else None


def _by_party(run: Run, metric: str) -> dict[str, float]:
    """Party → its last figure called ``metric``, of those that measured it."""
    return {p.name: m.value for p in run.parties for m in p.metrics if m.metric == metric}


def clients(run: Run) -> list[tuple[str, float, float]]:
    """Each client of a horizontal run: its name, its accuracy with the others and alone."""
    together, alone = _by_party(run, "accuracy"), _by_party(run, "accuracy_alone")
    return [(name, together[name], alone[name]) for name in run.of_role(Role.CLIENT) if name in alone]


@dataclass(frozen=True)
class LabelResult:
    """Shares of right labels on ``rows`` rows of ``scored_set``: of an attack in the party ``adversary`` on
    ``target`` and of the blind guess; AUC of the attack, None of a round's rows, which have no order.
    """

    attack: str
    adversary: str
    target: str
    scored_set: str
    rows: int
    accuracy: float
    blind: float
    auc: float | None = None

    @property
    def relative(self) -> float:
        """Share of wrong labels over the blind guess's: 0 is exact, 1 no better than blind; infinite if blind
        is exact.
        """
        return (1 - self.accuracy) / (1 - self.blind) if self.blind < 1 else math.inf

    @property
    def kind(self) -> str:
        """The kind of rows: "training", "prediction", or a round's: "round-0"."""
        return {"train": "training", "predict": "prediction"}.get(self.scored_set, self.scored_set)


def label_results(run: Run) -> tuple[LabelResult, ...]:
    """The targets' scores of attacks on their labels, the most successful first."""
    auc = {_on_labels(m): m.value for m in run.metrics("label_auc")}
    found: dict[tuple[str, str, str, str, int], LabelResult] = {}
    for prefix in ("", "matched_"):
        blind = {_on_labels(m)[1:]: m.value for m in run.metrics(f"blind_{prefix}label_accuracy")}
        for m in run.metrics(f"{prefix}label_accuracy"):
            key = _on_labels(m)
            if key[1:] in blind and (prefix or key in auc):
                found[key] = LabelResult(*key, m.value, blind[key[1:]], auc.get(key))
    return tuple(sorted(found.values(), key=lambda r: -r.accuracy))


def _on_labels(m: Metric) -> tuple[str, str, str, str, int]:
    return m.attack, m.adversary, m.target, m.scored_set, m.rows


class NotRun(NamedTuple):
    """An ``attack`` of ``adversary`` on ``target`` that gave no estimate, and the reason."""

    attack: str
    adversary: str
    target: str
    reason: str


def skipped(run: Run) -> list[NotRun]:
    """The attacks that lacked knowledge."""
    return [NotRun(m.attack, m.adversary, m.target, m.column) for m in run.metrics("skipped")]


def failed(run: Run) -> list[NotRun]:
    """The attacks that failed: their plug-ins raised an error or returned no estimate."""
    return [NotRun(m.attack, m.adversary, m.target, m.column) for m in run.metrics("failed")]


def targets(runs: Sequence[Run]) -> list[str]:
    """Every target of a scored attack, in order of appearance."""
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


def _largest(run: Run, metric: str) -> dict[tuple[str, str, int], float]:
    best: dict[tuple[str, str, int], float] = {}
    for m in _first(run, metric).values():
        key = (m.target, m.scored_set, m.rows)
        best[key] = max(m.value, best.get(key, -math.inf))
    return best


def _best_blind(run: Run) -> dict[tuple[str, str, int], Metric]:
    best: dict[tuple[str, str, int], Metric] = {}
    for m in (_first(run, "blind_mse") | _first(run, "blind_matched_mse")).values():
        key = (m.target, m.scored_set, m.rows)
        if math.isfinite(m.value) and (key not in best or m.value < best[key].value):
            best[key] = m
    return best
