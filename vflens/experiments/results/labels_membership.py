"""How well attacks named labels, and told a client's training rows from other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.numerics.measures.intervals import over_blind
from vflens.score.membership import FALSE_POSITIVE_RATES
from vflens.storage.metrics import Name

_RATES = {f"{rate:g}" for rate in FALSE_POSITIVE_RATES}


_LABELS = {
    Name.LABEL_ACCURACY: Name.BLIND_LABEL_ACCURACY,
    Name.MATCHED_LABEL_ACCURACY: Name.BLIND_MATCHED_LABEL_ACCURACY,
}


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
        """:func:`over_blind` of the shares of wrong labels."""
        return over_blind(1 - self.accuracy, 1 - self.blind)

    @property
    def kind(self) -> str:
        """The kind of rows: "training", "prediction", or a round's: "round-0"."""
        return {"train": "training", "predict": "prediction"}.get(self.scored_set, self.scored_set)


def label_results(run: PartyRuns) -> tuple[LabelResult, ...]:
    """The targets' scores of attacks on their labels, the most successful first."""
    auc = {_on_labels(m): m.value for m in run.metrics(Name.LABEL_AUC)}
    found: dict[tuple[str, str, str, str, int], LabelResult] = {}
    for name, of_a_guess in _LABELS.items():
        blind = {_on_labels(m)[1:]: m.value for m in run.metrics(of_a_guess)}
        for m in run.metrics(name):
            key = _on_labels(m)
            if key[1:] in blind and (name is not Name.LABEL_ACCURACY or key in auc):
                found[key] = LabelResult(*key, m.value, blind[key[1:]], auc.get(key))
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
