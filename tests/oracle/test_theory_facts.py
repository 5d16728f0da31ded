"""Slow facts: Theorem 2 on trained models of whole data sets, and finite alphabets where a model gives few
equations.
"""

from __future__ import annotations

import numpy as np
import pytest

from vflens import attacks
from vflens.experiments.audit.models import simulate
from vflens.experiments.audit.subject import load_subject
from vflens.numerics.linear_system import row_basis
from vflens.numerics.theory import closed_forms as theory

pytestmark = pytest.mark.facts


@pytest.mark.parametrize("name", ["digits", "wine", "breast_cancer"])
@pytest.mark.parametrize("kind", ["random", "trained"])
def test_bounds_and_closed_form_on_whole_data_sets(name: str, kind: str) -> None:
    """LB ≤ LS, half* ≤ UB (unclipped, full rank), closed form equal to the measurement, RCC2 below half* row
    by row.
    """
    subject = load_subject(name, classes=None, columns=None, id_column="id")
    x = subject.x
    for seed in range(5):
        world = simulate(subject, kind, np.random.default_rng(seed))
        assert world.parameters is not None
        A = np.diff(world.parameters["weight"], axis=0)
        full_rank = row_basis(A).shape[1] == min(A.shape)
        norms = {}
        for attack, center in {"ls": 0.0, "half_star": 0.5}.items():
            K = theory.second_moment(x, center)
            values = attacks.estimate(attack, A, x @ A.T).values
            measured = float(((values - x) ** 2).mean())
            bounds = theory.bounds_before_training(K, len(A))
            assert theory.nearest_solution_mse(A, K) == pytest.approx(measured, rel=1e-6)
            assert bounds.lower <= measured + 1e-12
            assert not full_rank or measured <= bounds.upper + 1e-12
            norms[attack] = np.linalg.norm(values - x, axis=1)
        rcc2 = np.linalg.norm(attacks.estimate("rcc2", A, x @ A.T).values - x, axis=1)
        assert theory.order_violations(rcc2, norms["half_star"], slack=1e-6) == 0
        assert theory.order_violations(norms["half_star"], np.linalg.norm(x - 0.5, axis=1)) == 0


@pytest.mark.parametrize("d", [8, 16, 24])
def test_one_equation_identifies_binary_columns(d: int) -> None:
    """K = 2: a single real equation gives 2^24 combinations away; the continuous attacks stay near blind."""
    rng = np.random.default_rng(d)
    A, x = rng.normal(size=(1, d)), rng.integers(0, 2, (200, d)).astype(float)
    estimate = attacks.estimate("finite_alphabet", A, x @ A.T, alphabets=((0.0, 1.0),) * d)
    exact = (estimate.values == x).all(axis=1)
    assert exact.mean() > 0.98  # two of 2^24 sums can lie within the tolerance
    assert (
        estimate.values[estimate.extras["candidates"] == 1] == x[estimate.extras["candidates"] == 1]
    ).all()
    assert ((attacks.estimate("rcc2", A, x @ A.T).values - x) ** 2).mean() > 0.15
