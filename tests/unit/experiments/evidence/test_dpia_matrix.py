"""The first table of a DPIA: a cell for each column and recipient, in one of four words."""

from __future__ import annotations

from typing import Any

import pytest

from vflens.experiments.evidence.matrix import rows, sentence
from vflens.experiments.evidence.measured import (
    INFERENCE,
    LINKABILITY,
    SINGLING_OUT,
    SQUARED,
    Reconstruction,
    RiskFigure,
)
from vflens.experiments.outcome.decide import State

SHARE = RiskFigure(0.97, 0.95, 0.99, 0.55)
ERROR = RiskFigure(3.0, 2.5, 3.5, 17.0, share=False, unit="root mean squared error, unit of age")


def _made(what: str = "age", state: State = State.FOUND, **changes: Any) -> Reconstruction:
    place = {"where": "with no defence", "recipient": "the server", "target": "columns of a.csv"}
    measured = {"term": INFERENCE, "statistic": "average", "attack": "ls", "rows": 200, "of": "predict rows"}
    found = {"what": what, "state": state, "figure": ERROR, "source": "run a"}
    return Reconstruction(**{**place, **measured, **found, **changes})


def test_each_cell_is_one_of_four_words_with_its_figure() -> None:
    found = [
        _made(),
        _made("income", State.NOT_FOUND),
        _made("income", State.UNDECIDED, recipient="a client", figure=SHARE, statistic="worst case"),
        _made("name", State.UNDECIDED, deciding=3200),
        _made("sex", deciding=3200),
    ]
    head, body = rows(found)
    assert head == ("what", "the server (with no defence)", "a client (with no defence)")
    assert body == [
        ("age", "found (± 3.0; a guess ± 17)", "not tested"),
        ("income", "not found", "not decided (97.0 %; a guess 55.0 %)"),
        ("name", "not decided (± 3.0; a guess ± 17), 3,200 rows would decide", "not tested"),
        ("sex", "found (± 3.0; a guess ± 17)", "not tested"),
    ]
    assert sentence(found).startswith(
        "The server (with no defence) finds 2 of 4 lines; a client (with no defence) finds 0."
    )


def test_the_worst_state_of_a_column_is_said_and_of_two_alike_the_error() -> None:
    share = _made("age within 2.0", statistic="worst case", figure=SHARE)
    assert rows([share, _made()])[1] == [("age", "found (± 3.0; a guess ± 17)")]
    assert rows([share, _made("age", State.NOT_FOUND)])[1] == [("age", "found (97.0 %; a guess 55.0 %)")]


def test_people_and_membership_stand_behind_columns() -> None:
    whole = _made("whole rows", term=SINGLING_OUT, figure=SHARE, state=State.NOT_FOUND)
    member = _made("membership (AUC)", term=LINKABILITY, figure=SHARE)
    every = _made("all columns", figure=ERROR)
    lines = [line[0] for line in rows([member, whole, every, _made()])[1]]
    assert lines == ["age", "whether a person was trained on", "a whole person"]


def test_an_error_over_all_columns_is_something_measured() -> None:
    every = _made("all columns", figure=RiskFigure(0.024, 0.022, 0.025, 0.069, share=False, unit=SQUARED))
    assert rows([every])[1] == [("columns together (mean squared error)", "found (0.024; a guess 0.069)")]
    assert sentence([every]).startswith("The server (with no defence) finds 1 of 1 line.")


def test_random_models_stand_back_where_trained_ones_are() -> None:
    random, trained = (_made(target=f"columns of a.csv, {kind} models") for kind in ("random", "trained"))
    assert rows([random, trained._replace(state=State.NOT_FOUND)])[1] == [("age", "not found")]
    assert rows([random])[1] == [("age", "found (± 3.0; a guess ± 17)")]


@pytest.mark.parametrize("state", [State.FOUND, State.UNDECIDED, State.NOT_FOUND])
def test_seeds_of_one_federation_share_a_column(state: State) -> None:
    seeds = [_made(where=f"with rounding 1, seed {seed}") for seed in (0, 1)]
    head, body = rows([seeds[0]._replace(state=State.NOT_FOUND), seeds[1]._replace(state=state)])
    assert head == ("what", "the server (with rounding 1)")
    assert body[0][1].startswith(state)


def test_of_nothing_nothing_is_said() -> None:
    assert rows([]) == (("what",), [])
    assert sentence([]) == "Nothing was measured: nothing can be said of a residual risk."
