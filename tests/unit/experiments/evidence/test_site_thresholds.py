"""Thresholds on whose row it is, and what a score of it finds, from made-up records."""

from __future__ import annotations

from typing import Any

import pytest
from thresholdcases import an_error, evidence_of

from vflens.errors import ConfigError
from vflens.experiments.evidence.thresholds import judge, read_threshold
from vflens.experiments.offline.score import of_score
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import SITE, Finding, Quantity
from vflens.experiments.outcome.table import long_rows


def _a_client(share: float, **changes: Any) -> Finding:
    place = {"attack": "source_inference", "target": "a and b", "scored_set": "train", "subject": SITE}
    return Finding.of_share(Quantity.SITES, share, 400, 0.5, **{**place, **changes})


@pytest.mark.parametrize(
    ("share", "most", "state"),
    [
        *((0.9, "60 %", State.FOUND), (0.58, "60 %", State.UNDECIDED), (0.5, "60 %", State.NOT_FOUND)),
        *((0.9, "blind", State.FOUND), (0.5, "blind", State.UNDECIDED)),
    ],
)
def test_whose_row_it_is_can_be_refused(share: float, most: str, state: State) -> None:
    evidence = [evidence_of(_a_client(share))]
    (outcome,) = judge([read_threshold(f"{SITE} > {most}")], False, evidence)
    assert outcome.state is state
    assert f"source_inference is right in {100 * share:.1f} %" in outcome.sentence


def test_a_client_beats_a_guess_too_and_stands_in_the_table() -> None:
    evidence = [evidence_of(an_error(0.06), _a_client(0.9))]
    (outcome,) = judge([], True, evidence)
    assert outcome.state is State.FOUND
    assert "source_inference" in outcome.sentence
    (row,) = (row for row in long_rows(evidence) if row["attack"] == "source_inference")
    assert (row["measure"], row["value"], row["blind"], row["rows"]) == ("right", 0.9, 0.5, 400)


def test_a_client_has_no_distance() -> None:
    with pytest.raises(ConfigError, match="a client has no distance, leave `within` out"):
        read_threshold(f"{SITE} within 2 > 10 %")


@pytest.mark.parametrize(("others", "state"), [(0.3, State.FOUND), (1.0, State.NOT_FOUND)])
def test_who_always_names_the_client_that_scores_finds_nothing(others: float, state: State) -> None:
    facts = {"attack": "source_inference", "rows": 400, "source_right": 1.0, "blind_source_right": 0.25}
    (found,) = of_score({**facts, "source_right_others": others}).found
    assert (found.quantity, found.rows, found.value, found.state) == (Quantity.SITES, 200, 1.0, state)
    assert found.blind > max(0.25, others - 1e-9)
