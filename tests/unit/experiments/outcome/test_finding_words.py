"""The sentences about a finding, word for word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vflens.experiments.outcome import words
from vflens.experiments.outcome.finding import Finding, Quantity


def _finding(value: float, high: float, blind: float, **more: Any) -> Finding:
    fixed: dict[str, Any] = {"attack": "lmmse", "target": "clinic", "low": 0.0, "rows": 1000}
    given: dict[str, Any] = {"subject": "age", "scored_set": "predict", "quantity": Quantity.ERROR, **more}
    return Finding(value=value, high=high, blind=blind, **{**fixed, **given})


EXACT = _finding(1e-9, 1e-9, 17.0)
ERROR = _finding(3.0, 3.2, 17.0)
SHARE = _finding(0.997, 0.997, 0.9, subject="hiv", quantity=Quantity.RIGHT)
NOT_FOUND = _finding(400.0, 500.0, 17.0, subject="crp")
OPEN = _finding(16.5, 17.5, 17.0, subject="cost")
CONSTANT = _finding(0.0, 0.0, 0.0, subject="site", varies=False)
UNREAD = _finding(0.0, 0.0, 0.0, subject="rare", varies=False, deciding=25_000)


@pytest.mark.parametrize(
    ("finding", "column"),
    [
        (EXACT, "age exactly, a blind guess to within ± 17"),
        (ERROR, "age to within ± 3.0, a blind guess to within ± 17"),
        (replace(ERROR, unit=False), "age error 9, a blind guess error 2.9e+02"),
        (SHARE, "hiv right in 99.7 % of rows, a blind guess right in 90 % of rows"),
        (NOT_FOUND, "crp not better than a guess, a blind guess to within ± 17"),
        (CONSTANT, "site it never varies, a blind guess to within ± 0"),
        (
            UNREAD,
            "rare not decided, it hardly varies among 1,000 rows, 25,000 rows read would decide, a blind "
            "guess to within ± 0",
        ),
    ],
)
def test_a_column(finding: Finding, column: str) -> None:
    assert words.column(finding) == column


def test_no_figure_stands_where_nothing_is_found() -> None:
    """A figure of an attack that is forty times worse than a guess reads as a result."""
    assert "400" not in words.reached(NOT_FOUND)
    assert words.reached(OPEN) == f"not decided, {OPEN.rows_needed:,} attacked rows would decide"
    assert "16" not in words.reached(OPEN).replace(f"{OPEN.rows_needed:,}", "")


@pytest.mark.parametrize(
    ("finding", "title"),
    [
        (
            EXACT,
            "Whoever knows the model and gets its predictions finds everyone's age exactly; a guess is 17 "
            "off.",
        ),
        (
            replace(EXACT, unit=False, scored_set="train"),
            "Whoever reads training finds everyone's age exactly; a guess is wrong.",
        ),
        (
            replace(ERROR, scored_set="train"),
            "Whoever reads training finds age to within ± 3.0; a guess to within ± 17.",
        ),
        (
            replace(SHARE, released="trees"),
            "Whoever gets the trees finds hiv in 99.7 % of rows; a guess in 90 %.",
        ),
    ],
)
def test_a_title(finding: Finding, title: str) -> None:
    assert words.title(finding) == title


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        ([EXACT, SHARE], "2 of 2 columns found"),
        ([EXACT, SHARE, NOT_FOUND, CONSTANT], "2 of 4 columns found; crp and site not"),
        ([EXACT, OPEN, UNREAD], "1 of 3 columns found; cost and rare not decided"),
        ([NOT_FOUND], "0 of 1 column found"),
        ([EXACT, *[NOT_FOUND] * 8], "1 of 9 columns found; crp, crp, crp, crp, crp, crp and 2 more not"),
    ],
)
def test_columns_are_counted(findings: list[Finding], sentence: str) -> None:
    assert words.counted_columns(findings) == sentence


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.004, "0.4 %"), (0.34, "34 %"), (0.997, "99.7 %"), (1.0, "100 %"), (0.9999, "100 %")],
)
def test_a_share(share: float, text: str) -> None:
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (38_123.0, "38,000"), (1.234, "1.2"), (0.01234, "0.012"), (1e-7, "1e-07"), (9.99, "10")],
)
def test_a_figure_in_its_own_unit(value: float, text: str) -> None:
    assert words.in_own_unit(value) in (text, f"{text}.0")
