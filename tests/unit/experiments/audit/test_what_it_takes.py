"""What an audit takes is said before; what cannot end with advice is refused before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vflens.errors import ConfigError
from vflens.experiments.audit.advice import check_advice, cost, seconds
from vflens.experiments.audit.bench import FEW_COLUMNS, MOST_COLUMNS, Plan
from vflens.experiments.audit.models import EPOCHS
from vflens.experiments.audit.subject import AuditSubject
from vflens.types import ColumnInfo


def _subject(columns: int, rows: int = 100) -> AuditSubject:
    names = [f"Hb={j}" for j in range(columns - 1)]
    infos = tuple(ColumnInfo(name, 0.0, 1.0) for name in (*names, "age"))
    return AuditSubject("own.csv", infos, np.zeros((rows, columns)), 2, one_hot=dict.fromkeys(names, "Hb"))


def test_a_cost_counts_columns_models_minutes_and_memory() -> None:
    assert cost(_subject(3), Plan(models=1)) == "3 columns, 2 models, about 1 minute of a core and 281 MiB"
    few, many = (
        float(cost(_subject(100, 1000), Plan(models=m)).split("about ")[1].split()[0]) for m in (10, 1000)
    )
    assert few < many


def test_seconds_follow_what_an_audit_does() -> None:
    """Only training in the clear is read, of more than 16 columns of one model instead of three."""
    clear, secure = Plan(), Plan(training="secure")

    def reading(columns: int, plan: Plan = clear, rows: int = 1000, classes: int = 5) -> float:
        at = rows, columns, classes
        return seconds(*at, plan) - seconds(*at, replace(plan, training="secure"))

    assert reading(10) == pytest.approx(3 * reading(10, Plan(models=1)))
    assert reading(FEW_COLUMNS) / FEW_COLUMNS**2 == pytest.approx(3 * reading(20) / 20**2)
    assert reading(20, rows=500) == pytest.approx(reading(20) / 2)
    assert reading(MOST_COLUMNS) > reading(MOST_COLUMNS + 1) == 0
    assert reading(EPOCHS * 2 - 1, classes=2) > reading(EPOCHS * 2, classes=2) == 0  # as many logits of a row
    for less, more in (
        (seconds(1000, 20, 2, secure), seconds(1000, 40, 2, secure)),
        (seconds(500, 20, 2, secure), seconds(1000, 20, 2, secure)),
        (seconds(1000, 20, 2, secure), seconds(1000, 20, 2, replace(secure, models=20))),
        (seconds(1000, 20, 2, secure), seconds(10**6, 20, 2, secure)),  # they are read
        (0, seconds(10, 1, 2, Plan(models=1, training="secure"))),
    ):
        assert less < more


def test_what_cannot_end_with_advice_is_refused() -> None:
    check_advice(_subject(MOST_COLUMNS), Plan())
    check_advice(_subject(MOST_COLUMNS + 1), Plan(training="secure"))
    with pytest.raises(ConfigError, match=r"own.csv has 129 columns, .* \(Hb makes 128\), .* --yes goes on"):
        check_advice(_subject(MOST_COLUMNS + 1), Plan())
