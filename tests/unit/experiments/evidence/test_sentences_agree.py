"""What a document and a threshold say of one figure agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from audits import audit_record, outcome

from vflens.experiments.audit.advice import headline
from vflens.experiments.audit.outcomes import by_column
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.evidence.measured import measured
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.evidence.thresholds import judge, read_threshold
from vflens.experiments.outcome import words
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Findings, Quantity, with_tries
from vflens.types import ColumnInfo

PAIRS = {"subject": "members", "target": "client-1", "scored_set": "train"}


@pytest.mark.parametrize(
    ("found", "state"),
    [([(0.40, 40), (0.35, 4000)], State.FOUND), ([(0.26, 20), (0.25, 4000)], State.UNDECIDED)],
)
def test_it_says_of_a_column_what_a_threshold_decides(found: list[tuple[float, int]], state: State) -> None:
    """The attack that decides goes first, not the one of the largest figure; both count the same tries."""
    known: dict[str, Any] = {"subject": "income", "tolerance": 1.0, "target": "passive"}
    columns = with_tries(
        Finding.of_share(
            *(Quantity.WITHIN, share, rows, 0.25), attack=f"attack {n}", scored_set="predict", **known
        )
        for n, (share, rows) in enumerate(found)
    )
    evidence = Findings(where="with no defence", columns=("income",), found=columns)
    (text,) = measured([evidence])
    (outcome,) = judge([read_threshold("income > blind")], False, [evidence])
    assert (text.state, outcome.state) == (state, state)


def test_noise_on_membership_is_rarely_beyond_a_guess() -> None:
    """60 attacks that guess pairs of 100 rows: at most 2.5 % of draws say that one can reconstruct."""
    rng = np.random.default_rng(1)
    draws = rng.binomial(100, 0.5, size=(200, 60)) / 100
    beyond = 0
    for draw in draws:
        pairs = with_tries(
            Finding.of_share(Quantity.MEMBERS, x, 100, 0.5, attack=f"a{n}", **PAIRS)
            for n, x in enumerate(draw)
        )
        states = {m.state for m in measured([Findings(found=pairs)])}
        beyond += State.FOUND in states
    assert beyond <= 0.025 * 200 + 3 * (0.025 * 0.975 * 200) ** 0.5


@pytest.mark.parametrize("failed", [{}, {"broken": "it broke"}], ids=["all ran", "one failed"])
@pytest.mark.parametrize(
    ("reached", "state"),
    [
        ([("lmmse", 0.01, 0.001)], State.FOUND),
        ([("lmmse", 0.097, 0.002)], State.UNDECIDED),
        ([("lmmse", 0.1, 0.0001)], State.NOT_FOUND),
        ([("lmmse", 0.2, 0.0001)], State.UNDECIDED),  # misled
        ([("lmmse", 0.2, 0.0001), ("ls", 0.1, 0.0001)], State.NOT_FOUND),
        ([("lmmse", 0.098, 0.0013), ("ls", 0.1, 0.01)], State.UNDECIDED),
        ([("", 0.1, 0.0001)], State.UNTESTED),
    ],
)
def test_the_first_screen_of_an_audit_says_what_its_dpia_says(
    reached: list[tuple[str, float, float]], state: State, failed: dict[str, str]
) -> None:
    """An attack that errs more than a guess shows nothing of what another one finds."""
    x = np.random.default_rng(1).random((100, 1))
    subject = AuditSubject("mine.csv", (ColumnInfo("income", 0.0, 1.0),), x, 2, units=np.ones(1))
    ran = [
        outcome(name, mse, stderr=of, column_stderr=(of,), right=(None,), blind_right=(None,))
        for name, mse, of in reached
    ]
    columns = by_column(ran, subject, failed)
    record = audit_record(*ran, units=(1.0,), by_column=columns, failed=failed)
    (document,) = (f for f in measured([of_audit(record)]) if f.quantity is Quantity.ERROR)
    if failed and state is State.NOT_FOUND:
        state = State.UNDECIDED
    assert (columns[0].state, document.state) == (state, state)
    assert words.reached(columns[0]) == words.reached(document)
    assert ("not decided" in headline(record)) is (state is State.UNDECIDED)
