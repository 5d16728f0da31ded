"""What the noise of a run protects: released tables, and the ε that releases of a party spent."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from vflens.experiments.results.files import LimitFacts
from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.experiments.results.results import final
from vflens.plugins.attack import installed_attack
from vflens.plugins.malicious import SENT
from vflens.storage.metrics import Name
from vflens.types import Knowledge

#: What was released → the names of the number of releases and of their ε.
_SPENT = {
    "training": (Name.TRAINING_RELEASES, Name.TRAINING_EPSILON),
    "prediction": (Name.PREDICTION_RELEASES, Name.PREDICTION_EPSILON),
    "label": (Name.LABEL_RELEASES, Name.LABEL_EPSILON),
}


def malicious(run: PartyRuns) -> list[str]:
    """A sentence for each party that was configured to break the protocol."""
    broken = [(party.name, party.role) for party in run.parties if party.settings.malicious]
    return [f"{name} sent {SENT[role]}" for name, role in broken if role and role in SENT]


class OnGrantsOnly(NamedTuple):
    """The ``defense`` of ``party`` acted on what is granted only: on nothing that training or predictions
    send.
    """

    party: str
    defense: str


def on_grants_only(run: PartyRuns) -> list[OnGrantsOnly]:
    """The defences of a finished run that protect grants alone."""
    return [OnGrantsOnly(m.target, m.detail) for m in run.metrics(Name.ON_GRANTS_ONLY)]


def protects_grants_alone(run: PartyRuns) -> bool:
    """Whether defences are configured, and all of them act on what is granted only."""
    configured = {(p.name, str(table.get("name"))) for p in run.parties for table in p.settings.defenses}
    return bool(configured) and configured <= set(on_grants_only(run))


def reads_grants(run: PartyRuns, attack: str, target: str) -> bool:
    """Whether ``attack`` on ``target`` reads what is granted and a defence may change: what the run marks,
    and the parameters that a passive party discloses.
    """
    if any((m.attack, m.target) == (attack, target) for m in run.metrics(Name.GRANTED)):
        return True
    kind = installed_attack(attack)
    return not run.alike and kind is not None and Knowledge.PARAMETERS in kind.needs


def hijacked(run: PartyRuns) -> list[str]:
    """A sentence for each detector that raised an alarm, with its first."""
    found: dict[tuple[str, str], Metric] = {}
    for m in sorted(run.metrics(Name.HIJACK_ALARM), key=lambda m: m.step):
        found.setdefault((m.target, m.detail), m)
    return [
        f"{detector} at {party} suspects from step {m.step} on that its gradients are not those of a loss "
        f"(score {m.value:.3f})"
        for (party, detector), m in sorted(found.items())
    ]


def _reads_released_tables(attack: str) -> bool:
    kind = installed_attack(attack)
    return kind is not None and Knowledge.RELEASED_TABLE in kind.needs


@dataclass(frozen=True)
class TableRelease:
    """A released table of ``target``: the least errors per cell that its noise claims, ``bound`` of all
    estimates and ``linear`` of linear ones, beside the ``errors`` of attacks, by name.
    """

    target: str
    bound: float
    linear: float | None
    errors: tuple[tuple[str, float], ...]


def releases(run: PartyRuns) -> list[TableRelease]:
    """Each released table, by target."""
    linear = {m.target: m.value for m in run.metrics(Name.RELEASED_LINEAR)}
    bounds = {m.target: m.value for m in run.metrics(Name.RELEASED_BOUND)}
    reached = [r for r in final(run) if _reads_released_tables(r.attack)]
    return [
        TableRelease(
            target,
            bound,
            linear.get(target),
            tuple((r.attack, r.mse) for r in reached if r.target == target),
        )
        for target, bound in sorted(bounds.items())
    ]


@dataclass(frozen=True)
class SpentPrivacy:
    """What the noise of ``party`` protects, a ``unit``: its releases in training and their total ε at δ, its
    predictions and their ε; None is unknown. ``budget``: the ε that the party allows, None without one.
    """

    party: str
    of_client: bool
    unit: str
    releases: float
    epsilon: float | None
    predictions: float
    prediction: float | None
    delta: float
    budget: float | None


def privacy(run: PartyRuns) -> list[SpentPrivacy]:
    """Each party with counted noise."""
    counts, epsilons = (
        {(kind, m.target): m.value for kind, names in _SPENT.items() for m in run.metrics(names[figure])}
        for figure in (0, 1)
    )
    known = {place: None if math.isnan(value) else value for place, value in epsilons.items()}
    limits = {p.name: p.settings.limits for p in run.parties}
    whole = set(run.alike)
    units = {"training": "a row", "label": "a label of a client's row"}
    return [
        SpentPrivacy(
            party,
            of_client=party in whole,
            unit="all rows of the client" if party in whole and kind == "training" else units[kind],
            releases=counts.get((kind, party), 0),
            epsilon=known.get((kind, party)),
            predictions=counts.get(("prediction", party), 0),
            prediction=known.get(("prediction", party)),
            delta=limits.get(party, LimitFacts()).delta,
            budget=limits.get(party, LimitFacts()).epsilon,
        )
        for kind, party in sorted({("label" if k == "label" else "training", p) for k, p in known})
    ]
