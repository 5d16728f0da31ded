"""The live page shows what is found of labels, members and sites, from made-up findings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from vflens.experiments.outcome.finding import SITE, Finding, Findings, Quantity
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.watch import charts, page, panels


def _found(quantity: Quantity, attack: str, subject: str) -> Finding:
    place: dict[str, Any] = {"target": "a and b", "scored_set": "train", "adversary": "the server"}
    return Finding.of_share(quantity, 0.75, 400, 0.5, attack=attack, subject=subject, **place)


def test_whose_row_it_is_stands_beside_labels_and_members(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (
        _found(Quantity.LABELS, "norm_scoring", "labels"),
        _found(Quantity.MEMBERS, "confidence", "members"),
        _found(Quantity.SITES, "source_inference", SITE),
        _found(Quantity.WITHIN, "lmmse", "age"),
    )
    run = cast(RecordedRun, SimpleNamespace(results=(), explained={}, findings=Findings(found=found)))
    monkeypatch.setattr(charts, "errors", lambda _: [])
    facts = panels.errors(run)
    assert [what for _, what in facts["others"]] == [
        "labels of a and b, training rows, named rightly",
        "pairs of a training row of a and b and another, AUC",
        f"{SITE}, of a and b, named rightly",
    ]
    shown = page.panel("errors", lambda: facts)
    assert all(f"{attack}</th>" in shown for attack in ("norm_scoring", "confidence", "source_inference"))
    assert f"<td>{SITE}, of a and b, named rightly</td><td>.750</td><td>.500</td>" in shown
