"""Randomised response with a prior: its law, its ε, and that no mechanism keeps more labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from vflens.defenses.label_dp import LabelDP
from vflens.errors import ConfigError
from vflens.plugins.defense import Context
from vflens.types import Array, Exchange, Owner, Phase

MANY = 40_000
PRIORS = [
    (0.55, 0.25, 0.15, 0.05),
    (0.05, 0.05, 0.05, 0.85),
    (0.25, 0.25, 0.25, 0.25),
    (0.48, 0.48, 0.04, 0.0),
]


def _law(defense: LabelDP, k: int) -> Array:
    """Share of each answer (columns) to each label (rows), among many draws."""
    labels = np.repeat(np.arange(k), MANY)
    owner, exchange = Owner("active", n_classes=k), Exchange("run", Phase.TRAIN, 0, 0)
    rows = np.arange(len(labels), dtype=np.int32)
    context = Context(
        owner,
        exchange,
        rows,
        defense.fit(owner, np.random.default_rng()),
        hook="on_labels",
        position=0,
        secret=b"s",
    )
    drawn = defense.on_labels(np.eye(k)[labels], context)
    assert set(drawn.sum(axis=1)) == {1.0}
    shares: Array = np.eye(k)[labels].T @ drawn / MANY
    return shares


def _most_kept(prior: tuple[float, ...], epsilon: float) -> float:
    """The largest P(answer = label) of any ε-label-DP mechanism, a linear program over all k × k laws."""
    k = len(prior)
    ratio = np.zeros((k * k * k, k * k))  # M[a, o] − e^ε M[b, o] ≤ 0
    for row, (a, b, o) in enumerate(np.ndindex(k, k, k)):
        ratio[row, a * k + o] += 1
        ratio[row, b * k + o] -= math.exp(epsilon)
    rows = np.kron(np.eye(k), np.ones(k))
    found = linprog(
        -np.diag(prior).ravel(), A_ub=ratio, b_ub=np.zeros(k**3), A_eq=rows, b_eq=np.ones(k), bounds=(0, 1)
    )
    return float(-found.fun)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("prior", PRIORS)
def test_with_a_prior_it_keeps_epsilon_and_as_many_labels_as_any_mechanism_can(
    prior: tuple[float, ...], epsilon: float
) -> None:
    law = _law(LabelDP(epsilon=epsilon, prior=prior), len(prior))
    error = 5 * np.sqrt(0.25 / MANY)
    assert (law <= math.exp(epsilon) * law.min(axis=0) + (1 + math.exp(epsilon)) * error).all()
    assert float(np.asarray(prior) @ np.diag(law)) == pytest.approx(_most_kept(prior, epsilon), abs=error)


def test_only_the_likeliest_classes_are_answers_and_the_others_get_them_alike() -> None:
    """ε = 1, m = 2 of four: .80 of what 2 cover, e/(e + 1)·.8 = .585, is more than .55, .547 and .475."""
    law = _law(LabelDP(epsilon=1.0, prior=PRIORS[0]), 4)
    kept = math.e / (math.e + 1)
    expected = [[kept, 1 - kept, 0, 0], [1 - kept, kept, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]
    np.testing.assert_allclose(law, expected, atol=5 * math.sqrt(0.25 / MANY))
    assert (law[:, 2:] == 0).all()


def test_with_a_strong_prior_every_row_gets_the_likeliest_class() -> None:
    law = _law(LabelDP(epsilon=0.3, prior=PRIORS[1]), 4)
    np.testing.assert_array_equal(law, np.tile([0, 0, 0, 1], (4, 1)))


def test_a_uniform_prior_changes_no_draw() -> None:
    """Bit for bit what it draws without one, as every class is an answer."""
    uniform = LabelDP(epsilon=2.0, prior=(0.25,) * 4)
    np.testing.assert_array_equal(_law(uniform, 4), _law(LabelDP(epsilon=2.0), 4))


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.7, 0.4, -0.1], [0.3, 0.3, 0.3], [math.nan, 0.5, 0.5]])
def test_a_prior_that_is_no_distribution_over_the_classes_is_refused(prior: Any) -> None:
    with pytest.raises(ConfigError, match=r"^label_dp at 'active': prior = .* each of the 3 classes"):
        LabelDP(prior=prior).check("active", 3)
