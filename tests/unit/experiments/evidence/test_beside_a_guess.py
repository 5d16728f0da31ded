"""Thresholds beside a guess: every finding of a column counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from thresholdcases import a_share, an_error, evidence_of

from vflens.experiments.evidence.thresholds import (
    judge,
    read_threshold,
)
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.numerics.measures.intervals import half_width

# --- no more than a guess: every finding of a column

_HELD, _OPEN, _BROKEN = State.NOT_FOUND, State.UNDECIDED, State.FOUND
_WITHIN = {_HELD: (0.05, 1000), _OPEN: (0.105, 1000), _BROKEN: (0.3, 1000)}
_RIGHT = {_HELD: (0.5, 1000), _OPEN: (0.64, 1000), _BROKEN: (0.9, 1000)}
_ERROR = {_HELD: 17.5, _OPEN: 16.5, _BROKEN: 8.0}


def _error(value: float, blind: float = 17.0, half: float | None = 30.0, **changes: object) -> Finding:
    square = value**2
    ends = {} if half is None else {"low": max(0.0, square - half) ** 0.5, "high": (square + half) ** 0.5}
    own: dict[str, Any] = {"quantity": Quantity.ERROR, "subject": "income", "value": value, **ends, **changes}
    return replace(an_error(0.05, half_width=None), **{"blind": blind, **own})


def _right(share: float, rows: int, blind: float = 0.6) -> Finding:
    place: dict[str, Any] = {"attack": "lmmse", "target": "passive", "scored_set": "predict"}
    return Finding.of_share(Quantity.RIGHT, share, rows, blind, subject="income", **place)


@pytest.mark.parametrize("guess", ["blind", "imputation"])
@pytest.mark.parametrize("within", _WITHIN)
@pytest.mark.parametrize("other", [*_ERROR])
@pytest.mark.parametrize("kind", [Quantity.ERROR, Quantity.RIGHT])
def test_a_threshold_beside_a_guess_takes_the_worst_of_all_findings(
    guess: str, within: State, other: State, kind: Quantity
) -> None:
    beside = _error(_ERROR[other]) if kind is Quantity.ERROR else _right(*_RIGHT[other])
    found = (a_share(*_WITHIN[within]), beside)
    assert [replace(f, tries=2).state for f in found] == [within, other]
    (outcome,) = judge([read_threshold(f"income > {guess}")], False, [evidence_of(*found)])
    order = [_BROKEN, _OPEN, _HELD]
    assert outcome.state is min((within, other), key=order.index)
    text = {Quantity.ERROR: "root mean squared error", Quantity.RIGHT: "is right about income"}[kind]
    if within is not other:
        assert (text in outcome.sentence) is (outcome.state is other)
        assert ("to within 5.0" in outcome.sentence) is (outcome.state is within)
    assert ("rows would decide" in outcome.sentence) is (outcome.state is _OPEN)


def test_the_sentence_on_an_error_is_in_the_columns_own_unit() -> None:
    (outcome,) = judge([read_threshold("income > blind")], False, [evidence_of(a_share(0.05), _error(8.0))])
    assert outcome.sentence == (
        "income > blind, with no defence: broken, lmmse finds income to within ± 8.0 (5.8 … 9.9; root mean "
        "squared error) on 1,000 rows (predict rows of passive), a blind guess to within ± 17"
    )


def test_attacks_that_all_err_more_than_a_guess_hold_nothing() -> None:
    """Their moments are wrong: another attack may find more. One that does as well as a guess is enough."""
    threshold, share, misled = read_threshold("income > blind"), a_share(0.05), _error(25.0)
    (outcome,) = judge([threshold], False, [evidence_of(share, misled)])
    assert outcome.state is _OPEN
    assert outcome.remedy.startswith("run an attack that errs no more than a guess")
    assert outcome.sentence.startswith("income > blind, with no defence: not decided, lmmse finds income to")
    able = _error(17.5, attack="half_star")
    assert judge([threshold], False, [evidence_of(share, misled, able)])[0].state is _HELD
    (best,) = evidence_of(misled, able).best()
    assert best.attack == "half_star"
    assert best.state is _HELD
    defended = replace(evidence_of(share, misled), defended=True)  # its noise misleads, as it should
    assert judge([threshold], False, [defended])[0].state is _HELD
    assert replace(evidence_of(misled), defended=True).best()[0].state is _HELD
    (alone,) = evidence_of(misled).best()
    assert alone.state is _OPEN
    assert alone.reason.startswith("no attack does as well as a guess")


def test_a_share_that_is_allowed_says_nothing_of_errors() -> None:
    (outcome,) = judge([read_threshold("income > 10 %")], False, [evidence_of(a_share(0.05), _error(0.1))])
    assert outcome.state is _HELD


def test_an_error_alone_and_one_of_another_column() -> None:
    threshold = [read_threshold("income > blind")]
    assert judge(threshold, False, [evidence_of(_error(8.0))])[0].state is _BROKEN
    other = _error(8.0, subject="age")
    assert judge(threshold, False, [evidence_of(a_share(0.05), other)])[0].state is _HELD


def test_an_error_counts_beside_imputation_where_that_ran() -> None:
    threshold = [read_threshold("income > imputation")]
    elsewhere = _error(8.0, scored_set="train")
    assert judge(threshold, False, [evidence_of(a_share(0.05), elsewhere)])[0].state is _HELD
    assert judge(threshold, False, [evidence_of(a_share(0.05), _error(8.0))])[0].state is _BROKEN


def test_an_error_without_an_interval_leaves_it_open() -> None:
    (outcome,) = judge(
        [read_threshold("income > blind")], False, [evidence_of(a_share(0.05), _error(8.0, half=None))]
    )
    assert (outcome.state, "no interval" in outcome.sentence) == (_OPEN, True)
    assert outcome.remedy.startswith("state a share in %")


def test_noise_in_all_findings_breaks_a_kept_threshold_rarely() -> None:
    """Six attacks that find as much as the guess, in the share and in the error: each is a try."""
    rng, threshold, n, draws = np.random.default_rng(0), [read_threshold("income > blind")], 300, 200

    def broken(findings: list[Finding]) -> bool:
        return judge(threshold, False, [evidence_of(*findings)])[0].state is _BROKEN

    every, alone = [], []
    for _ in range(draws):
        squares = rng.normal(size=(6, n, 4)) ** 2
        halves = half_width(1.0) * squares.mean(axis=2).std(axis=1, ddof=1) / np.sqrt(n)
        errors = [
            _error(float(s.mean()) ** 0.5, 1.0, float(h), rows=n)
            for s, h in zip(squares, halves, strict=True)
        ]
        shares = [a_share(f / n, n, blind=0.3, imputation=None) for f in rng.binomial(n, 0.3, 6).tolist()]
        every.append(broken([*shares, *errors]))
        alone.append(any(f.state is _BROKEN for f in (*shares, *errors)))
    assert np.mean(every) <= 0.025 + 3 * (0.025 * 0.975 / draws) ** 0.5
    assert np.mean(alone) > 0.1  # without a correction for tries


def test_the_rows_that_would_decide_are_those_of_every_open_finding() -> None:
    found = (a_share(0.1), _error(16.5))
    needed = [replace(f, tries=2).rows_needed for f in found]
    (outcome,) = judge([read_threshold("income > blind")], False, [evidence_of(*found)])
    assert outcome.sentence.endswith(f", {max(needed):,} attacked rows would decide")
