"""What theory says about a scored submission, at the target: RVG Theorems 1 and 2 beside the measured errors.

The target owns its columns and its weights, so it needs nobody to compute closed forms and bounds; like every
figure of its scoring service they stay with it. They belong to unclipped ``ls`` and ``half_star`` with exact
scores and true parameters, and to the rows whose equations are complete: what a report compares is decided
there (:mod:`experiments.theory`), where the defences of all parties are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from vfl.acts import Guess
from vfl.numerics import theory
from vfl.numerics.linear_system import first_differences, row_basis
from vfl.types import Array, RowStatus, statuses

CENTERS: Mapping[str, float] = {"ls": 0.0, "half_star": 0.5}
_ORDER = (("half_star", "half"), ("rcc2", "half_star"))  # Theorem 1: the first errs at most as the second


class Figure(NamedTuple):
    """One row of the metrics."""

    metric: str
    value: float
    attack: str


def figures(guesses: Mapping[str, Guess], truth: Array, weight: Array) -> Iterator[Figure]:
    """``theory_*`` figures of the attacks that a theorem covers.

    ``theory_rows`` is the number of rows with complete equations: the others are left out. ``theory_measured`` and
    ``theory_closed`` are MSE and Theorem 2's closed form on the same rows, hence equal but for
    rounding; ``theory_lower`` and ``theory_upper`` bound every model of full rank (the upper one is left out where
    this model has a lower one); ``theory_any_center`` is Tr((I − P)K_μ)/d; ``theory_disorder`` counts the rows
    that break Theorem 1.

    Args:
        guesses: by attack.
        truth: (n, d) of the submitted rows.
        weight: W_pas (k, d).
    """
    A = first_differences(len(weight)) @ weight
    for name, center in CENTERS.items():
        ok = guesses[name].status == RowStatus.OK if name in guesses else np.zeros(0, bool)
        if ok.any():
            yield from _theorem_2(name, guesses[name].values[ok], truth[ok], A, center)
    half = Guess("half", np.full(truth.shape, 0.5), statuses(len(truth)))
    known = {**guesses, "half": half}
    for better, worse in _ORDER:
        if better in known and worse in known:
            yield from _theorem_1(known[better], known[worse], truth)


def _theorem_2(name: str, values: Array, truth: Array, A: Array, center: float) -> Iterator[Figure]:
    K = theory.second_moment(truth, center)
    bounds = theory.bounds_before_training(K, len(A))
    yield Figure("theory_rows", len(truth), name)
    yield Figure("theory_measured", float(((values - truth) ** 2).mean()), name)
    yield Figure("theory_closed", theory.nearest_solution_mse(A, K), name)
    yield Figure("theory_lower", bounds.lower, name)
    if row_basis(A).shape[1] == min(A.shape):
        yield Figure("theory_upper", bounds.upper, name)
    K_mean = theory.second_moment(truth, truth.mean(axis=0))
    yield Figure("theory_any_center", theory.nearest_solution_mse(A, K_mean), name)


def _theorem_1(better: Guess, worse: Guess, truth: Array) -> Iterator[Figure]:
    ok = (better.status == RowStatus.OK) & (worse.status == RowStatus.OK)
    if ok.any():
        norms = (np.linalg.norm((g.values - truth)[ok], axis=1) for g in (better, worse))
        yield Figure("theory_disorder", theory.order_violations(*norms), better.attack)
