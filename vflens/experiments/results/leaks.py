"""The largest leak of each target: the attack that takes most of all columns, in training or after it."""

from __future__ import annotations

from collections.abc import Iterator

from vflens.experiments.outcome.finding import AFFINE, Finding, Quantity
from vflens.experiments.results.findings import of_result
from vflens.experiments.results.folders import PartyRuns
from vflens.experiments.results.results import explained, final
from vflens.numerics.measures.intervals import least_first, over_blind
from vflens.types import Facts, Phase


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
