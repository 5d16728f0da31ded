"""What a federation's findings say together: the worst attack, its tries, what a failure leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Findings, Quantity, with_tries
from vflens.experiments.outcome.words import figures, scored, subject

PLACE: dict[str, Any] = {"attack": "ls", "target": "passive", "scored_set": "predict", "subject": "age"}
ERROR: dict[str, Any] = {"rows": 400, "value": 3.0, "low": 2.5, "high": 3.5, "blind": 17.0, **PLACE}


def _share(value: float, rows: int = 400, quantity: Quantity = Quantity.WITHIN, **changes: Any) -> Finding:
    return Finding.of_share(quantity, value, rows, 0.25, **{**PLACE, **changes})


def test_of_a_subject_the_attack_that_decides_is_best_not_the_largest_figure() -> None:
    found, open_ = _share(0.35, 4000, attack="a"), _share(0.40, 40, attack="b")
    assert (found.state, open_.state) == (State.FOUND, State.UNDECIDED)
    (best,) = Findings(found=(open_, found), where="here", source="run r").best()
    assert (best.attack, best.where, best.source) == ("a", "here", "run r")
    assert [f.attack for f in Findings(found=(open_, found)).beyond_blind()] == ["a"]


@pytest.mark.parametrize(
    ("quantity", "kept"),
    [(Quantity.WHOLE, 2), (Quantity.ALONE, 2), (Quantity.LABELS, 2), (Quantity.WITHIN, 1)],
)
def test_people_and_labels_of_training_and_of_predictions_are_two_things(
    quantity: Quantity, kept: int
) -> None:
    pair = [_share(0.9, quantity=quantity, scored_set=rows) for rows in ("train", "predict")]
    assert len(Findings(found=tuple(pair)).best()) == kept


def test_two_readers_of_one_column_stand_alone() -> None:
    pair = [_share(0.9, adversary=who) for who in ("the active party", "the coordinator")]
    assert len(Findings(found=tuple(pair)).best()) == 2


def test_nothing_is_not_found_while_an_attack_failed() -> None:
    held, found = _share(0.25, 40_000), _share(0.9, subject="income")
    assert held.state is State.NOT_FOUND
    kept, leaks = Findings(found=(held, found), failed=("mine",)).best()
    assert (kept.state, kept.reason, kept.rows_needed) == (
        *(State.UNDECIDED, "mine failed and may find more", 0),
    )
    assert leaks.state is State.FOUND


def test_an_attack_that_tried_some_rows_is_why_a_finding_is_open() -> None:
    (capped,) = Findings(found=(_share(0.3, 40),), capped={"ls": 40}).best()
    assert (capped.state, capped.reason) == (State.UNDECIDED, "ls tried 40 rows only")
    assert Findings(found=(_share(0.3, 40),), capped={"ls": 30}).best()[0].reason == ""


def test_attacks_on_one_column_are_tries_and_others_are_not() -> None:
    found = [_share(0.3, attack="a"), _share(0.3, attack="b"), _share(0.3, subject="income")]
    found += [_share(0.6, quantity=q) for q in (Quantity.LABELS, Quantity.MEMBERS, Quantity.WHOLE)]
    found += [_share(0.6, quantity=Quantity.ALONE), Finding(quantity=Quantity.ERROR, **ERROR)]
    assert [f.tries for f in with_tries(found)] == [2, 2, 1, 2, 2, 2, 2, 1]


def test_more_tries_need_a_larger_gain() -> None:
    """.38 of 150 rows beside .25: three and a half standard errors, enough alone, too few as one of 40."""
    alone = _share(0.38, 150)
    assert (alone.state, replace(alone, tries=40).state) == (State.FOUND, State.UNDECIDED)


def test_what_nobody_attacked_is_not_tested() -> None:
    assert _share(0.0, attack="", reason="no attack on labels ran").state is State.UNTESTED


def test_imputation_is_the_guess_where_it_finds_more() -> None:
    assert _share(0.5, imputation=0.49).state is not State.FOUND
    assert _share(0.5, imputation=0.1).guessed == 0.25


@pytest.mark.parametrize(
    ("finding", "state", "gain"),
    [
        (Finding(quantity=Quantity.ERROR, **ERROR), State.FOUND, 1 - 3 / 17),
        (Finding(quantity=Quantity.ALL, **{**ERROR, "low": None, "high": None}), State.UNDECIDED, 14 / 17),
        (Finding(quantity=Quantity.ALL, **{**ERROR, "rows": 49}), State.UNDECIDED, 14 / 17),
        (Finding(quantity=Quantity.ALL, **{**ERROR, "value": 17.0, "high": 17.1}), State.NOT_FOUND, 0.0),
    ],
)
def test_an_error_is_judged_by_its_interval(finding: Finding, state: State, gain: float) -> None:
    assert finding.state is state
    assert finding.gain == pytest.approx(gain)


def test_findings_are_chosen_by_target_quantity_and_column() -> None:
    found = (_share(0.3), _share(0.6, target="b"), Finding(quantity=Quantity.ERROR, **ERROR))
    here = Findings(found=found, columns=("age", "income"))
    assert here.of("b").found == found[1:2]
    assert here.only(Quantity.ERROR) == found[2:]
    assert here.by_column() == {"age": found, "income": ()}


def test_a_finding_comes_back_from_its_document() -> None:
    for finding in (_share(0.3, imputation=0.2, tolerance=1.0), Finding(quantity=Quantity.ERROR, **ERROR)):
        (kept,) = Findings(found=(finding,), where="here").json
        assert Finding.of_json(kept) == replace(finding, where="here")
        assert kept["state"] == finding.state


def test_a_figure_names_its_rows_and_its_guess() -> None:
    labels = _share(0.9, quantity=Quantity.LABELS, subject="labels", scored_set="round-0")
    assert subject(labels) == "labels of passive, rows of round 0"
    assert subject(_share(0.9)) == "columns of passive, predict rows"
    assert figures(Finding(quantity=Quantity.ERROR, **ERROR)) == ("3.0", "2.5 … 3.5", "17")
    assert figures(_share(0.5, imputation=0.3))[2] == "30.0 %"
    assert scored(_share(0.5, tolerance=2.0, imputation=0.3)).endswith(
        "a blind guess 25.0 %, imputation 30.0 %"
    )
