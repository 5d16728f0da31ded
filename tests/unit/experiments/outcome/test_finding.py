"""A finding has one of four states, each by its rule, and names the rows that would decide an open one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.score.service import MIN_ROWS


def error(value: float, high: float, blind: float = 10.0, **more: Any) -> Finding:
    """An error of ``value`` in the column's unit, up to ``high``."""
    given: dict[str, Any] = {"rows": 1000, "low": max(0.0, 2 * value - high), **more}
    where: dict[str, Any] = {"subject": "age", "attack": "lmmse", "target": "clinic", "scored_set": "predict"}
    return Finding(quantity=Quantity.ERROR, value=value, high=high, blind=blind, **where, **given)


def right(value: float, blind: float, rows: int = 1000, **more: Any) -> Finding:
    """A share of right values."""
    return replace(
        error(value, value, blind, rows=rows, low=value), quantity=Quantity.RIGHT, subject="hiv", **more
    )


@pytest.mark.parametrize(
    ("finding", "state"),
    [
        (error(5.0, 5.5), State.FOUND),
        (error(9.0, 9.9), State.FOUND),
        (error(9.0, 10.1), State.UNDECIDED),
        (error(9.95, 10.2), State.UNDECIDED),  # its best case takes more than 5 %
        (error(9.95, 9.97), State.FOUND),  # little, and surely
        (error(10.0, 10.1), State.NOT_FOUND),
        (error(10.2, 10.5), State.NOT_FOUND),
        (error(10.2, 10.21), State.NOT_FOUND),  # hardly more than a guess
        (error(30.0, 31.0), State.NOT_FOUND),
        (error(0.0, 0.0, blind=0.0), State.NOT_FOUND),
        (right(0.99, 0.90), State.FOUND),
        (right(0.90, 0.90, rows=100), State.UNDECIDED),
        (right(0.90, 0.90, rows=200_000), State.NOT_FOUND),
        (right(1.0, 1.0), State.NOT_FOUND),
        (right(0.5, 0.9), State.NOT_FOUND),
    ],
)
def test_figures_decide(finding: Finding, state: State) -> None:
    assert finding.state is state


def test_figures_whose_squares_no_float_holds_decide_nothing() -> None:
    found = error(2e200, 3e200, blind=1e300)
    assert found.state is State.UNDECIDED
    assert found.rows_needed == 0


def test_fewer_than_fifty_rows_decide_nothing() -> None:
    for found in (error(0.0, 0.0), error(10.2, 10.5), right(1.0, 0.5)):
        assert replace(found, rows=MIN_ROWS - 1).state is State.UNDECIDED
        assert replace(found, rows=MIN_ROWS).state is not State.UNDECIDED


def test_a_column_that_never_varies_has_nothing_to_find_and_one_that_varies_elsewhere_is_open() -> None:
    """No figure of rows that do not vary says anything of rows that do."""
    for figures in (error(0.0, 0.0), error(10.2, 10.5), right(1.0, 0.5)):
        assert replace(figures, varies=False).state is State.NOT_FOUND
        unread = replace(figures, varies=False, deciding=25_000)
        assert (unread.state, unread.rows_needed) == (State.UNDECIDED, 25_000)


def test_more_attacks_need_more_evidence() -> None:
    """The correction for tries: an interval that just decides for one decides for fifty no more."""
    alone = error(9.0, 9.95)
    assert alone.state is State.FOUND
    assert replace(alone, tries=50).state is State.UNDECIDED
    assert right(0.93, 0.90, rows=1500).state is State.FOUND
    assert right(0.93, 0.90, rows=1500, tries=50).state is State.UNDECIDED


def test_what_is_decided_needs_no_rows() -> None:
    assert error(5.0, 5.5).rows_needed == error(30.0, 31.0).rows_needed == error(10.2, 10.5).rows_needed == 0


def test_so_many_rows_decide_a_share() -> None:
    """Monte Carlo: an attack right in 92 % of rows, a guess in 90 %: nearly all draws of that size decide."""
    few = right(0.92, 0.90, rows=400)
    assert few.state is State.UNDECIDED
    assert few.rows_needed > 400
    rng = np.random.default_rng(3)
    found = [
        replace(few, value=rng.binomial(n, 0.92) / n, rows=n).state
        for n in (4 * few.rows_needed, 400)
        for _ in range(200)
    ]
    assert np.mean([state is State.FOUND for state in found[:200]]) > 0.95
    assert np.mean([state is State.FOUND for state in found[200:]]) < 0.5


def test_so_many_rows_decide_an_error() -> None:
    """Monte Carlo: errors that take a tenth off a guess's square, by draws of that many rows."""
    rng = np.random.default_rng(4)

    def drawn(rows: int) -> Finding:
        squares = 90 * rng.chisquare(1, rows)
        mse, half = squares.mean(), 1.96 * squares.std(ddof=1) / rows**0.5
        return error(mse**0.5, (mse + half) ** 0.5, rows=rows)

    half = 1.96 * (2 * 90**2 / 300) ** 0.5
    few = error(90**0.5, (90 + half) ** 0.5, rows=300)
    assert few.state is State.UNDECIDED
    needed = few.rows_needed
    assert needed > 300
    assert replace(few, rows=needed, high=(90 + half * (300 / needed) ** 0.5) ** 0.5).state is State.FOUND
    assert np.mean([drawn(4 * needed).state is State.FOUND for _ in range(100)]) > 0.9
    assert np.mean([drawn(300).state is State.FOUND for _ in range(100)]) < 0.5


def test_a_guess_that_is_as_good_is_held_with_enough_rows() -> None:
    """Rows decide in both directions."""
    few = right(0.9, 0.9, rows=100)
    assert right(0.9, 0.9, rows=few.rows_needed).state is State.NOT_FOUND


def test_json_gives_it_back() -> None:
    for found in (error(9.0, 10.1), right(0.9, 0.9, rows=100), error(0.0, 0.0, varies=False, deciding=70)):
        facts = found.json
        assert Finding.of_json(facts) == found
        assert (facts["state"], facts["rows_needed"]) == (found.state.value, found.rows_needed)


@pytest.mark.parametrize(
    ("finding", "share"),
    [(error(0.0, 0.0), 1.0), (error(5.0, 5.5), 0.75), (error(20.0, 21.0), 0.0), (right(0.95, 0.9), 0.5)],
)
def test_the_share_is_of_what_a_guess_leaves_open(finding: Finding, share: float) -> None:
    assert finding.share == pytest.approx(share)
