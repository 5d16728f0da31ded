"""How well attacks told a client's training rows from other rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vflens.experiments.results.folders import Run


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


def membership_results(run: Run) -> list[MembershipResult]:
    """The scores of attacks on membership at their targets, the most successful first."""
    found: dict[tuple[str, str, str, int], dict[str, float]] = {}
    for m in run.metrics("membership_tpr"):
        found.setdefault((m.attack, m.adversary, m.target, m.rows), {})[m.column] = m.value
    blind = {(m.adversary, m.target): m.value for m in run.metrics("blind_membership_auc")}
    results = {
        key: MembershipResult(*key, m.value, found[key], blind[key[1:3]])
        for m in run.metrics("membership_auc")
        if (key := (m.attack, m.adversary, m.target, m.rows)) in found and key[1:3] in blind
    }
    return sorted(results.values(), key=lambda r: -r.auc)
