"""The words of the scoreboard, from made-up records: every sentence that it can say."""

from __future__ import annotations

import pytest

from vflens.experiments.scoreboard.verdicts import CellResult, best, over_seeds, protection, success


def found(*relative: float, attack: str = "some") -> CellResult:
    return CellResult(attack, "MSE", relative, (1.0,) * len(relative))


FEW = (0.1, 0.1, 0.1, 0.1)
BLIND = (1.0, 1.1, 0.9, 1.0, 1.0)


@pytest.mark.parametrize(
    ("after", "before", "words"),
    [
        ((0.9, 1.2, 0.9, 1.1, 1.0), (0.1, 0.2) * 3, "hides all"),
        ((0.2,) * 5, (0.1, 0.2) * 3, "hides nothing (some, 0.20 ± 0.00)"),
        ((0.4, 0.5, 0.6, 0.5, 0.5), (0.1, 0.2) * 3, "hides part (some, 0.50 ± 0.09)"),
        (BLIND, BLIND, "nothing to hide"),
        ((0.3,) * 5, BLIND, "opens to some"),
        (FEW, (0.1,) * 5, "no verdict: fewer than 5 results"),
        ((0.1,) * 5, FEW, "no verdict: fewer than 5 results"),
    ],
)
def test_a_defence_is_judged_by_the_best_attack(
    after: tuple[float, ...], before: tuple[float, ...], words: str
) -> None:
    assert protection([found(*after)], [found(*before)]) == words


def test_without_an_attack_nothing_is_said_of_a_defence() -> None:
    assert protection([], [found(0.1, 0.1)]) == "nothing was scored"
    strong = found(*(0.2,) * 5, attack="strong")
    assert best([found(*(0.3,) * 5), strong]) == strong


def test_words_of_attacks() -> None:
    assert success(found(*(0.01,) * 5)) == "finds nearly all"
    assert success(found(*(0.5,) * 5)) == "finds part (0.50 ± 0.00)"
    assert success(found(0.7, 0.95, 1.05, 0.9, 1.1)) == "no better than blind"
    assert success(found(*FEW)) == "no verdict: 4 of at least 5 results"


def test_exact_labels_beside_an_exact_blind_guess_are_undefined_and_no_failure() -> None:
    """All labels found, and the blind guess exact in two seeds: 0/0 there, and 0 in the others."""
    blind = (1.0, 0.7, 0.8, 1.0, 0.6, 0.75, 0.9)
    exact = CellResult("label_restoration", "accuracy", (1.0,) * 7, blind)
    assert success(exact) == "finds nearly all, of 7 seeds 2 undefined"
    short = CellResult("label_restoration", "accuracy", (1.0,) * 3, (1.0, 0.7, 0.8))
    assert success(short) == "no verdict: 2 of at least 5 results, of 3 seeds 1 undefined"


def test_a_seed_counts_once_and_the_worse_rows_count() -> None:
    made = {"attack": "a", "measure": "MSE", "blind": 2.0}
    rows = [
        {**made, "rows": kind, "seed": seed, "figure": value}
        for kind, values in (("train", (0.2, 0.4)), ("predict", (0.9,)))
        for seed in range(5)
        for value in values
    ]
    averaged = over_seeds(rows)
    assert averaged is not None
    assert averaged.figure == pytest.approx((0.3,) * 5)
    assert averaged.mean == pytest.approx(0.15)
