"""Relative errors, pooled over seeds, and intervals: against SciPy and by Monte Carlo."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.outcome.table import overall
from vflens.experiments.results.results import ColumnError
from vflens.numerics.measures.intervals import interval, over_blind, pooled


def test_intervals_are_students() -> None:
    values = [0.2, 0.5, 0.4, 0.9]
    mean, half = interval(values)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert interval([0.3]) == (0.3, 0.0)


def test_nothing_over_nothing_is_undefined() -> None:
    assert math.isnan(over_blind(0.0, 0.0))
    assert over_blind(0.1, 0.0) == math.inf
    assert math.isnan(ColumnError("constant", 0.0, 0.0).relative)
    place: dict[str, Any] = {"attack": "label_restoration", "target": "client-1", "scored_set": "round-0"}
    exact = Finding.of_share(Quantity.LABELS, 1.0, 8, 1.0, subject="labels", **place)
    assert math.isnan(overall(exact)["relative"])


def test_errors_are_added_before_they_are_divided() -> None:
    found = pooled([(0.0, 0.0), (0.1, 0.2), (0.2, 0.2), (0.1, 0.0)])
    assert found.mean == pytest.approx(0.4 / 0.4)
    assert (found.seeds, found.undefined) == (3, 1)
    nothing = pooled([(0.0, 0.0)])
    assert math.isnan(nothing.mean)
    assert (nothing.seeds, nothing.undefined) == (0, 1)


def test_the_interval_of_a_pooled_error_covers_it() -> None:
    """Ten seeds with noise in both errors: about 95 % of the intervals hold the true quotient."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        blind = rng.normal(0.3, 0.03, 10)
        found = pooled(zip((0.5 * blind + rng.normal(0, 0.03, 10)).tolist(), blind.tolist(), strict=True))
        covered += abs(found.mean - 0.5) <= found.half
    assert 0.93 < covered / 2000 < 0.97
