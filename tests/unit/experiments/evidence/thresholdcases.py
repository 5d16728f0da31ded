"""Made-up findings of one federation, and what holds them, for thresholds."""

from __future__ import annotations

from typing import Any

from vflens.experiments.outcome.finding import Finding, Findings, Quantity


def a_share(share: float, rows: int = 1000, **changes: object) -> Finding:
    known: dict[str, Any] = {
        "attack": "lmmse",
        "target": "passive",
        "scored_set": "predict",
        "subject": "income",
    }
    known |= {"blind": 0.05, "imputation": 0.08, "tolerance": 5.0, **changes}
    return Finding.of_share(Quantity.WITHIN, share, rows, **known)


def evidence_of(*found: Finding, where: str = "with no defence", defended: bool = False) -> Findings:
    return Findings(where=where, defended=defended, columns=("income", "age"), found=found)


def an_error(error: float, half_width: float | None = 0.001, **changes: object) -> Finding:
    ends = {} if half_width is None else {"low": error - half_width, "high": error + half_width}
    known: dict[str, Any] = {"blind": 0.06, "target": "passive", "subject": "columns", **ends, **changes}
    place: dict[str, Any] = {"attack": "lmmse", "rows": 1000, "scored_set": "predict"}
    return Finding(**{"quantity": Quantity.ALL, "value": error, **place, **known})
