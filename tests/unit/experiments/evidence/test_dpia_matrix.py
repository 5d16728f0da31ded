"""The first table of a DPIA: a cell for each column and recipient, in one of four words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vflens.experiments.evidence.matrix import rows, sentence
from vflens.experiments.evidence.measured import measured, target, what
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import SITE, Finding, Findings, Quantity

SHARE: dict[str, Any] = {"quantity": Quantity.WITHIN, "value": 0.97, "low": 0.95, "high": 0.99, "blind": 0.55}
ERROR: dict[str, Any] = {"quantity": Quantity.ERROR, "value": 3.0, "low": 2.5, "high": 3.5, "blind": 17.0}
HELD: dict[str, Any] = {**ERROR, "value": 17.0, "low": 16.9, "high": 17.1}
OPEN: dict[str, Any] = {**ERROR, "value": 16.0, "low": 13.0, "high": 20.5}
STATES = {State.FOUND: ERROR, State.UNDECIDED: OPEN, State.NOT_FOUND: HELD}


def _made(subject: str = "age", figures: dict[str, Any] = ERROR, **changes: Any) -> Finding:
    place = {"where": "with no defence", "adversary": "the server", "target": "a.csv", "source": "run a"}
    measured = {"attack": "ls", "rows": 200, "scored_set": "predict", "subject": subject}
    return Finding(**{**place, **measured, **figures, **changes})


def test_each_cell_is_one_of_four_words_with_its_figure() -> None:
    few = {**SHARE, "value": 0.6}
    found = [
        _made(),
        _made("income", HELD),
        _made("income", few, adversary="a client"),
        _made("name", OPEN),
        _made("job", few, adversary="a client", reason="ls failed"),
    ]
    head, body = rows(found)
    assert head == ("what", "the server (with no defence)", "a client (with no defence)")
    assert body == [
        ("age", "found (± 3.0; a guess ± 17)", "not tested"),
        ("income", "not found", "not decided (60.0 %; a guess 55.0 %), 800 attacked rows would decide"),
        ("name", "not decided (± 16; a guess ± 17), 6,400 attacked rows would decide", "not tested"),
        ("job", "not tested", "not decided (60.0 %; a guess 55.0 %), 800 attacked rows would decide"),
    ]
    assert sentence(found).startswith(
        "The server (with no defence) finds 1 of 4 lines; a client (with no defence) finds 0."
    )


def test_the_worst_state_of_a_column_is_said_and_of_two_alike_the_error() -> None:
    share = _made("age", SHARE)
    assert rows([share, _made()])[1] == [("age", "found (± 3.0; a guess ± 17)")]
    assert rows([share, _made("age", HELD)])[1] == [("age", "found (97.0 %; a guess 55.0 %)")]


def test_people_and_membership_stand_behind_columns() -> None:
    whole, member = (_made(figures={**SHARE, "quantity": q}) for q in (Quantity.WHOLE, Quantity.MEMBERS))
    every = _made("columns", quantity=Quantity.ALL)
    lines = [line[0] for line in rows([member, whole, every, _made()])[1]]
    assert lines == ["age", "whether a person was trained on", "a whole person"]


@pytest.mark.parametrize(
    ("right", "cell"),
    [
        (0.6, "found (60.0 %; a guess 33.3 %)"),
        (0.25, "not found"),
        (0.35, "not decided (35.0 %; a guess 33.3 %), 6,400 attacked rows would decide"),
    ],
)
def test_whose_case_it_is_has_a_row_behind_columns(right: float, cell: str) -> None:
    where = {"subject": SITE, "target": "a and b and c", "scored_set": "train", "attack": "source_inference"}
    place: dict[str, Any] = {"where": "with no defence", "adversary": "the server", "source": "run a"}
    site = Finding.of_share(Quantity.SITES, right, 200, 1 / 3, **where, **place)
    (here,) = measured([Findings(where="with no defence", found=(site,), source="run a")])
    assert rows([here, _made()])[1] == [
        ("age", "found (± 3.0; a guess ± 17)"),
        ("which site a case is from", cell),
    ]
    assert (what(here), target(here)) == (SITE, "rows of a and b and c")


def test_an_error_over_all_columns_is_something_measured() -> None:
    figures = {"quantity": Quantity.ALL, "value": 0.024, "low": 0.022, "high": 0.026, "blind": 0.069}
    every = _made("columns", figures)
    assert rows([every])[1] == [("columns together (mean squared error)", "found (0.024; a guess 0.069)")]
    assert sentence([every]).startswith("The server (with no defence) finds 1 of 1 line.")


def test_random_models_stand_back_where_trained_ones_are() -> None:
    random, trained = (_made(target=f"a.csv, {kind} models") for kind in ("random", "trained"))
    assert rows([random, replace(trained, **HELD)])[1] == [("age", "not found")]
    assert rows([random])[1] == [("age", "found (± 3.0; a guess ± 17)")]


@pytest.mark.parametrize("state", [State.FOUND, State.UNDECIDED, State.NOT_FOUND])
def test_seeds_of_one_federation_share_a_column(state: State) -> None:
    made = (HELD, STATES[state])
    seeds = [_made(figures=own, where=f"with rounding 1, seed {seed}") for seed, own in enumerate(made)]
    assert seeds[1].state is state
    head, body = rows(seeds)
    assert head == ("what", "the server (with rounding 1)")
    assert body[0][1].startswith(state)


def test_of_nothing_nothing_is_said() -> None:
    assert rows([]) == (("what",), [])
    assert sentence([]) == "Nothing was measured: nothing can be said of a residual risk."
