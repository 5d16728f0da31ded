"""What the noise of a run protects: released tables, and the ε that releases of a party spent."""

from __future__ import annotations

import math

from vflens.config import Limits
from vflens.experiments.results.folders import Metric, Run
from vflens.experiments.results.results import final
from vflens.plugins.attack import installed_attack
from vflens.types import Document, Knowledge, Role


def malicious(run: Run) -> list[str]:
    """A sentence for each party that was configured to break the protocol."""
    broken = [party.name for party in run.parties if party.settings.malicious]
    return [f"{name} sent other gradients than those of its loss" for name in broken]


def hijacked(run: Run) -> list[str]:
    """A sentence for each detector that raised an alarm, with its first."""
    found: dict[tuple[str, str], Metric] = {}
    for m in sorted(run.metrics("hijack_alarm"), key=lambda m: m.step):
        found.setdefault((m.target, m.column), m)
    return [
        f"{detector} at {party} suspects from step {m.step} on that its gradients are not those of a loss "
        f"(score {m.value:.3f})"
        for (party, detector), m in sorted(found.items())
    ]


def broken(run: Run, label: str) -> list[str]:
    """What :func:`malicious` and :func:`hijacked` say of the run that ``label`` names, for a page's top."""
    return [
        *(f"MALICIOUS, with {label}: {sentence}" for sentence in malicious(run)),
        *(f"HIJACKING SUSPECTED, with {label}: {sentence}" for sentence in hijacked(run)),
    ]


def _reads_released_tables(attack: str) -> bool:
    kind = installed_attack(attack)
    return kind is not None and Knowledge.RELEASED_TABLE in kind.needs


def releases(run: Run) -> list[dict[str, object]]:
    """Each released table: its target, the errors per cell that its noise claims, the errors of attacks."""
    linear = {m.target: m.value for m in run.metrics("released_linear")}
    bounds = {m.target: m.value for m in run.metrics("released_bound")}
    reached = [r for r in final(run) if _reads_released_tables(r.attack)]
    return [
        {
            "target": target,
            "bound": bound,
            "linear": linear.get(target),
            "errors": [(r.attack, r.mse) for r in reached if r.target == target],
        }
        for target, bound in sorted(bounds.items())
    ]


def privacy(run: Run) -> list[Document]:
    """Each party with counted noise: what the noise protects, releases of it per phase, total ε (None:
    unknown), δ, the budget.
    """
    kinds = ("training", "prediction", "label")
    counts, epsilons = (
        {(k, m.target): m.value for k in kinds for m in run.metrics(f"{k}_{figure}")}
        for figure in ("releases", "epsilon")
    )
    known = {place: None if math.isnan(value) else value for place, value in epsilons.items()}
    limits = {p.name: p.config.get("limits", {}) for p in run.parties}
    whole = {p.name for p in run.parties if p.role == Role.CLIENT}
    units = {"training": "a row", "label": "a label of a client's row"}
    return [
        {
            "party": party,
            "of_client": party in whole,
            "unit": "all rows of the client" if party in whole and kind == "training" else units[kind],
            "releases": counts.get((kind, party), 0),
            "epsilon": known.get((kind, party)),
            "predictions": counts.get(("prediction", party), 0),
            "prediction": known.get(("prediction", party)),
            "delta": limits.get(party, {}).get("delta", Limits().delta),
            "budget": limits.get(party, {}).get("epsilon"),
        }
        for kind, party in sorted({("label" if k == "label" else "training", p) for k, p in known})
    ]
