"""How well attacks named labels and clients, told training rows from others; means; the largest leaks."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from vflens.experiments.outcome.finding import AFFINE, CASE, SITE, Finding, Quantity
from vflens.experiments.outcome.words import deciding, number, percent
from vflens.experiments.results.findings import figures_of, of_result
from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.experiments.results.results import Result, explained, final, is_baseline
from vflens.names import all_of
from vflens.numerics.measures.advantage import exact
from vflens.numerics.measures.intervals import least_first, over_blind
from vflens.numerics.measures.permuted import permuted
from vflens.plugins.attack import installed_attack, is_blind, means_only
from vflens.score.membership import FALSE_POSITIVE_RATES
from vflens.storage.metrics import Name
from vflens.types import Facts, Phase
from vflens.words import counted

_RATES = {f"{rate:g}" for rate in FALSE_POSITIVE_RATES}
_LABELS = {
    Name.LABEL_ACCURACY: Name.BLIND_LABEL_ACCURACY,
    Name.MATCHED_LABEL_ACCURACY: Name.BLIND_MATCHED_LABEL_ACCURACY,
}


@dataclass(frozen=True)
class LabelResult:
    """Shares of right labels on ``rows`` rows of ``scored_set``: of an attack in the party ``adversary`` on
    ``target`` and of the blind guess; AUC of the attack, None of a round's rows, which have no order;
    ``anew``: what it finds of labels dealt anew, of what a guess leaves open, None where that was not tried.
    """

    attack: str
    adversary: str
    target: str
    scored_set: str
    rows: int
    accuracy: float
    blind: float
    auc: float | None = None
    anew: float | None = None

    @property
    def kind(self) -> str:
        """The kind of rows: "training", "prediction", or a round's: "round-0"."""
        return {"train": "training", "predict": "prediction"}.get(self.scored_set, self.scored_set)

    def finding(self, adversary: str) -> Finding:
        """It, as ``adversary`` in words finds it."""
        place: Facts = {"attack": self.attack, "adversary": adversary, "target": self.target}
        of: Facts = {**place, "subject": "labels", "scored_set": self.scored_set, "label": True}
        figures: Facts = {"rows": self.rows, "blind": self.blind, "anew": self.anew}
        return Finding.of_share(Quantity.LABELS, self.accuracy, **figures, **of)


def label_results(run: PartyRuns) -> tuple[LabelResult, ...]:
    """The targets' scores of attacks on their labels, the most successful first."""
    auc, anew = (
        {_on_labels(m): m.value for m in run.metrics(name)} for name in (Name.LABEL_AUC, Name.LABELS_ANEW)
    )
    found: dict[tuple[str, str, str, str, int], LabelResult] = {}
    for name, of_a_guess in _LABELS.items():
        blind = {_on_labels(m)[1:]: m.value for m in run.metrics(of_a_guess)}
        for m in run.metrics(name):
            key = _on_labels(m)
            if key[1:] in blind and (name is not Name.LABEL_ACCURACY or key in auc):
                found[key] = LabelResult(
                    *key,
                    accuracy=m.value,
                    blind=blind[key[1:]],
                    auc=auc.get(key),
                    anew=anew.get(key),
                )
    return tuple(sorted(found.values(), key=lambda r: -r.accuracy))


def _on_labels(m: Metric) -> tuple[str, str, str, str, int]:
    return m.attack, m.adversary, m.target, m.scored_set, m.rows


class MembershipResult(NamedTuple):
    """An ``attack`` of ``adversary`` on ``target``: the AUC over ``rows`` candidates, of which half trained,
    and the share of training rows found, by the share of others that are taken for some. A guess has an AUC
    of ``blind``.
    """

    attack: str
    adversary: str
    target: str
    rows: int
    auc: float
    found_at: Mapping[str, float]
    blind: float


def membership_results(run: PartyRuns) -> list[MembershipResult]:
    """The scores of attacks on membership at their targets, the most successful first; one without the share
    found at each rate is left out.
    """
    found: dict[tuple[str, str, str, int], dict[str, float]] = {}
    for m in run.metrics(Name.MEMBERSHIP_TPR):
        found.setdefault((m.attack, m.adversary, m.target, m.rows), {})[m.detail] = m.value
    blind = {(m.adversary, m.target): m.value for m in run.metrics(Name.BLIND_MEMBERSHIP_AUC)}
    results = {
        key: MembershipResult(*key, m.value, found[key], blind[key[1:3]])
        for m in run.metrics(Name.MEMBERSHIP_AUC)
        if (key := (m.attack, m.adversary, m.target, m.rows))[1:3] in blind
        and found.get(key, {}).keys() >= _RATES
    }
    return sorted(results.values(), key=lambda r: -r.auc)


def column_means(run: PartyRuns) -> tuple[Finding, ...]:
    """How far the mean of each attack's answers lies from the column's own, scaled to [0, 1]: of a column of
    two values it is a share of people; beside the best guess from what was granted, the one that errs least
    over all columns. None of pixels, of clients and of older runs.
    """
    return tuple(found for r in final(run) if not is_blind(r.attack) for found in _means_of(run, r))


def asked_means(run: PartyRuns) -> tuple[Finding, ...]:
    """Column means from attacks that estimate nothing else, blind ones too."""
    return tuple(found for r in final(run) if means_only(r.attack) for found in _means_of(run, r))


def _means_of(run: PartyRuns, r: Result) -> Iterator[Finding]:
    name = Name.COLUMN_MEAN_ERROR
    errors, granted = figures_of(run, name, r, r.attack), figures_of(run, Name.COLUMN_BLIND_MEAN_ERROR, r)
    guesses = {m.attack for m in run.metrics(name) if is_baseline(m, r.adversary)}
    blind = min(
        (granted, *(figures_of(run, name, r, guess) or granted for guess in sorted(guesses))), key=_average
    )
    place: Facts = {"attack": r.attack, "target": r.target, "scored_set": r.scored_set, "rows": r.rows}
    for c in (c for c in granted if c in errors):
        yield Finding(quantity=Quantity.MEAN, subject=c, value=errors[c], blind=blind[c], **place)


def best_means(run: PartyRuns) -> Iterator[str]:
    """A sentence on each target and set of rows of which an attack was asked for means alone: what the attack
    that errs least tells of them, whichever it is.
    """
    found: dict[tuple[str, str, int], dict[str, list[Finding]]] = {}
    for m in column_means(run):
        found.setdefault((m.target, m.scored_set, m.rows), {}).setdefault(m.attack, []).append(m)
    asked = {place: attacks for place, attacks in found.items() if any(map(means_only, attacks))}
    for (target, scored, rows), attacks in asked.items():
        error, blind, attack = min(
            (_average({m.subject: m.value for m in ms}), _average({m.subject: m.blind for m in ms}), name)
            for name, ms in attacks.items()
        )
        yield (
            f"means of the columns over {counted(rows, f'{scored} row', ',')} of {target}, to within so much "
            f"of their range: {attack} {error:.3f}, the best guess from what was granted {blind:.3f}"
        )


def _average(figures: Mapping[str, float]) -> float:
    return sum(figures.values()) / len(figures) if figures else math.inf


def sites(run: PartyRuns) -> tuple[Finding, ...]:
    """By attack, of the training rows of all clients the share that is named as their own client's; then of
    rows that nobody trained on. A guess is right in 1/K. An attack that does not read training is judged by
    the second alone, beside the permutation null. Nothing of a run whose clients are not all here: naming one
    client always is right there.
    """
    parts = {Name.SOURCE_RIGHT: Phase.TRAIN, Name.SOURCE_RIGHT_OTHERS: Phase.PREDICT}
    found = [
        _together(attack, scored, shares)
        for name, scored in parts.items()
        for attack, shares in _by_attack(run, name).items()
        if len(shares) == len(run.alike)
    ]
    outside = {f.attack for f in found if not _reads_training(f.attack)}
    return tuple(
        _beside_null(run, f) if f.attack in outside else f
        for f in found
        if f.attack not in outside or f.scored_set == Phase.PREDICT
    )


def _reads_training(attack: str) -> bool:
    kind = installed_attack(attack)
    return kind is None or Phase.TRAIN in kind.phases


def _beside_null(run: PartyRuns, f: Finding) -> Finding:
    """``f`` beside what it would be if the rows of each class had exchanged their clients."""
    counts: dict[str, dict[str, tuple[float, ...]]] = defaultdict(dict)
    for m in (m for m in run.metrics(Name.SOURCE_NAMED) if m.attack == f.attack):
        counts[m.detail][m.target] = m.values
    clients, none = sorted(run.alike), (0.0,) * len(run.alike)
    null = permuted(np.array([[of.get(name, none) for name in clients] for of in counts.values()]))
    return replace(f, subject=CASE, blind=null.mean, deviation=null.deviation)


def _by_attack(run: PartyRuns, name: Name) -> dict[str, dict[str, tuple[float, int]]]:
    """Attack → client → its own share and how many rows it is of, half of the candidates."""
    found: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    for party in run.parties:
        for m in party.metrics:
            if m.name is name and m.target == party.name:
                found[m.attack][m.target] = m.value, m.rows // 2
    return found


def _together(attack: str, scored: str, shares: dict[str, tuple[float, int]]) -> Finding:
    rows = sum(n for _, n in shares.values())
    value = sum(share for share, _ in shares.values()) / len(shares)
    low, high = exact(value, rows)
    return Finding(
        quantity=Quantity.SITES,
        subject=SITE,
        attack=attack,
        target=all_of(sorted(shares)),
        scored_set=scored,
        rows=rows,
        value=value,
        low=low,
        high=high,
        blind=1 / len(shares),
    )


def sites_told(findings: Sequence[Finding], where: str = "") -> list[str]:
    """A sentence for each attack, from :func:`sites`, which begins with ``where``."""
    beside = {f.attack: f for f in findings if f.scored_set == Phase.PREDICT}
    trained = [f for f in findings if f.scored_set == Phase.TRAIN]
    sentences = [
        _sentence(f, f", and of {percent(beside[f.attack].value)} of rows that nobody trained on")
        for f in trained
    ]
    sentences += [_sentence(f, _by_chance(f)) for f in findings if f.deviation is not None]
    return [_begun(where + words) for words in sentences]


def _sentence(f: Finding, more: str) -> str:
    rows = counted(f.rows, f"{'training' if f.scored_set == Phase.TRAIN else 'prediction'} row", ",")
    return (
        f"{f.subject}: {f.state}{deciding(f)}, {f.attack} names the client of "
        f"{percent(f.value)} of {rows} rightly (a guess: {percent(f.blind)}){more}."
    )


def _by_chance(f: Finding) -> str:
    """The p-value of a finding beside its permutation null, by the normal law."""
    beyond = (f.value - f.blind) / f.deviation if f.deviation else 0.0
    chance = NormalDist().cdf(-beyond)
    words = "p < .001" if chance < 0.001 else f"p = {number(chance)}"
    return f"; as many with the clients permuted within each class: {words}"


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def largest_leaks(run: PartyRuns) -> tuple[Finding, ...]:
    """The largest leak of each target, the largest of all first; of two equal ones that with an error."""
    found: dict[str, Finding] = {}
    for leak in sorted(_leaks(run), key=_by_share):
        found.setdefault(leak.target, leak)
    return tuple(found.values())


def beside(run: PartyRuns, leak: Finding) -> Finding | None:
    """Where ``leak`` is of training rows, the most successful attack on its target's prediction rows."""
    predicted = (r for r in final(run) if (r.target, r.scored_set) == (leak.target, Phase.PREDICT))
    return next((of_result(run, r) for r in predicted if leak.scored_set == Phase.TRAIN), None)


def up_to_map(attack: str, target: str, r2: float) -> Finding:
    """What ``attack`` leaves open after the best affine map, of training rows; a guess has an R² of 0."""
    place: Facts = {"attack": attack, "target": target, "scored_set": Phase.TRAIN, "subject": AFFINE}
    return Finding(quantity=Quantity.ALL, rows=0, value=1 - max(r2, 0.0), blind=1.0, **place)


def _leaks(run: PartyRuns) -> Iterator[Finding]:
    yield from (of_result(run, r) for r in final(run))
    yield from (up_to_map(attack, target, r2) for (attack, target), r2 in explained(run).items())


def _by_share(leak: Finding) -> tuple[float, bool, float]:
    mapped = leak.subject == AFFINE
    return -round(leak.taken, 3), mapped, 0.0 if mapped else least_first(over_blind(*leak.errors))
