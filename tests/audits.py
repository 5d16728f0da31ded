"""Records of audits, made up from few facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from vflens.experiments.audit.outcomes import AttackOutcome
from vflens.experiments.audit.record import AuditRecord
from vflens.types import Phase


def read(document: Mapping[str, Any]) -> AuditRecord:
    """The record that ``document`` holds, checked as a file is."""
    return TypeAdapter(AuditRecord).validate_json(json.dumps(document), strict=True)


def outcome(attack: str, mse: float, columns: int = 1, **facts: Any) -> AttackOutcome:
    """An ``attack`` that errs by ``mse`` on each of so many ``columns``."""
    none = (0.0,) * columns
    by_column = {"columns": (mse,) * columns, "column_blind": (0.1,) * columns, "column_stderr": none}
    shares = {"found": none, "blind_found": none, "imputed_found": none}
    place = {"attack": attack, "kind": "random", "phase": Phase.PREDICT, "released": "", "rows": 100}
    return AttackOutcome(**{**place, "mse": mse, "stderr": 0.0, **by_column, **shares, **facts})


def audit_record(*attacks: AttackOutcome, **facts: Any) -> AuditRecord:
    """The record of an audit in which these ``attacks`` ran."""
    known = {"subject": "mine.csv", "columns": ("income",), "tolerance": {}, "rows": 100, "table_rows": 100}
    return AuditRecord(**{**known, "attacks": attacks, **facts})
