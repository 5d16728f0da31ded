"""What a defence costs, in words, from made-up records: every sentence; the interval by Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from vflens.experiments.outcome.words import number
from vflens.experiments.pages.cost import Cost, Use, use_of

STEADY = [0.9, 0.9, 0.9, 0.9, 0.9]


def cost(after: Sequence[float], before: Sequence[float] = STEADY, alone: float = 0.6) -> Cost:
    defended, undefended = (
        {seed: Use(figure, alone) for seed, figure in enumerate(figures)} for figures in (after, before)
    )
    return Cost.of("AUC", defended, undefended)


@pytest.mark.parametrize(
    ("after", "before", "words"),
    [
        (STEADY, STEADY, "at no measured cost (± .000)"),
        ([0.89, 0.91, 0.9, 0.89, 0.91], STEADY, "at no measured cost (± .012)"),
        ([0.8] * 5, STEADY, "at a cost of .100 ± .000 AUC"),
        ([0.95] * 5, STEADY, "with .050 ± .000 more AUC"),
        ([0.8, 0.9, 0.85, 0.7, 0.95], STEADY, "not decided (.060 ± .119)"),
        ([0.6, 0.61, 0.59, 0.6, 0.6], STEADY, "no use left (gain .000 ± .009)"),
        (STEADY, [0.6, 0.61, 0.59, 0.6, 0.6], "the model is of no use (gain .000 ± .009)"),
        (STEADY[1:], STEADY, "not measured (4 of at least 5 results)"),
        ([*STEADY[1:], math.nan], STEADY, "not measured (4 of at least 5 results)"),
    ],
)
def test_words(after: list[float], before: list[float], words: str) -> None:
    assert str(cost(after, before)) == words


def test_a_model_that_ranks_worse_than_the_active_party_is_of_no_use_though_as_often_right() -> None:
    """A bank of which 88 % say no: everybody is told no, accuracy stays and AUC falls below .6."""
    assert str(cost([0.43, 0.3, 0.47, 0.5, 0.41])).startswith("no use left (gain -.178")


def test_seeds_are_paired() -> None:
    """Seeds differ by .1, the defence takes .01 of each: decided only since each stands beside its own."""
    before = [0.7, 0.8, 0.9, 0.95, 0.85]
    assert str(cost([b - 0.01 for b in before], before)) == "at a cost of .010 ± .000 AUC"


def test_two_classes_are_measured_by_auc_others_by_accuracy() -> None:
    utility = {"accuracy": 0.88, "accuracy_alone": 0.87, "auc": 0.8, "auc_alone": 0.6}
    assert use_of(utility, 2) == ("AUC", Use(0.8, 0.6))
    assert use_of(utility, 3) == ("accuracy", Use(0.88, 0.87))
    assert use_of({"accuracy": 0.88}, 3) == ("accuracy", None)


def test_a_number_is_measured_by_r2_and_what_the_federation_gains_by_it() -> None:
    """Ten seeds: the words follow from SciPy's interval of the paired differences."""
    rng = np.random.default_rng(3)
    before, alone = rng.normal(0.5, 0.1, 10), rng.normal(0.2, 0.05, 10)
    after = before - 0.04 + rng.normal(0, 0.005, 10)
    uses = [
        {
            seed: use_of({"r2": r2, "r2_alone": own, "r2_gain": r2 - own, "rmse": 9.0, "rmse_alone": 11.0}, 1)
            for seed, (r2, own) in enumerate(zip(figures.tolist(), alone.tolist(), strict=True))
        }
        for figures in (after, before)
    ]
    assert {measure for of_seeds in uses for measure, _ in of_seeds.values()} == {"R²"}
    defended, undefended = ({s: use for s, (_, use) in found.items() if use} for found in uses)
    found = Cost.of("R²", defended, undefended)
    paired, gain = (stats.ttest_1samp(x, 0).confidence_interval() for x in (before - after, after - alone))
    half, half_of_gain = ((i.high - i.low) / 2 for i in (paired, gain))
    assert half < 0.01 < stats.ttest_ind(before, after).confidence_interval().high  # unpaired: undecided
    assert str(found) == f"at a cost of {number((before - after).mean())} ± {number(half)} R²"
    assert found.gain == f"{number((after - alone).mean())} ± {number(half_of_gain)}"
    assert use_of({"r2": 0.5, "rmse": 9.0}, 1) == ("R²", None)


def test_a_model_that_predicts_worse_than_the_mean_has_no_use_left() -> None:
    """R² has no lower end: below the active party's own it is a loss, not a gain."""
    worse = {seed: Use(-3.0 - seed / 100, 0.2) for seed in range(6)}
    plain = {seed: Use(0.5, 0.2) for seed in range(6)}
    assert str(Cost.of("R²", worse, plain)) == "no use left (gain -3.225 ± .020)"
    assert str(Cost.of("R²", worse, dict(enumerate([Use(0.2, 0.2)] * 6)))).startswith(
        "the model is of no use"
    )


def test_the_interval_of_the_cost_covers_it() -> None:
    """A true cost of .05: about 95 % of the intervals of ten paired seeds hold it."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(2000):
        before = rng.normal(0.85, 0.05, 10)
        found = cost((before - 0.05 + rng.normal(0, 0.02, 10)).tolist(), before.tolist())
        covered += abs(found.mean - 0.05) <= found.half
    assert 0.93 < covered / 2000 < 0.97
