"""ε of Gaussian noise in a release: against the mass that it leaves, and only where theorem and sampler."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from vflens.numerics.gaussian_privacy import gaussian_delta, gaussian_epsilon, gaussian_sensitivity
from vflens.table_noise.accounting import local_privacy
from vflens.table_noise.mechanisms import Gaussian


@pytest.mark.parametrize("a", [0.1, 1.0, 3.44, 8.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 20.0])
def test_delta_is_the_mass_that_a_ratio_of_e_to_epsilon_does_not_cover(a: float, epsilon: float) -> None:
    """∫ max(0, φ(x − a) − e^ε φ(x)) dx by quadrature."""
    crossing = a / 2 + epsilon / a
    uncovered = quad(
        lambda x: norm.pdf(x - a) - np.exp(epsilon) * norm.pdf(x),
        crossing,
        a + 40,
        points=[a, crossing + 1],
        limit=300,
    )[0]
    assert gaussian_delta(a, epsilon) == pytest.approx(uncovered, abs=1e-10, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-15, 1e-5, 0.3])
@pytest.mark.parametrize("a", [1e-3, 0.1, 2.0, 50.0])
def test_epsilon_and_sensitivity_invert_delta(a: float, delta: float) -> None:
    epsilon = gaussian_epsilon(a, delta)
    if epsilon == 0:
        assert gaussian_delta(a, 0.0) <= delta
    else:
        assert gaussian_delta(a, epsilon) == pytest.approx(delta, rel=1e-9)
        assert gaussian_sensitivity(epsilon, delta) == pytest.approx(a, rel=1e-9)


def test_the_theorem_holds_where_it_is_used_and_fails_beyond() -> None:
    """A scan of a ≤ 2 and all δ; the first failure at δ = 1e-5 is at a = 3.44; p = 30: 31.8 against 37.6."""

    def theorem(a: float, delta: float) -> float:
        return a * (1 + float(np.sqrt(2 * np.log(1 / delta))))

    deltas = [*np.logspace(-300, -3, 60), *np.linspace(2e-3, 0.999, 60)]
    for a, delta in itertools.product(np.linspace(0.02, 2.0, 34), deltas):
        assert gaussian_epsilon(a, delta) <= theorem(a, delta), (a, delta)
    fails = [a for a in np.linspace(2, 5, 301) if gaussian_epsilon(a, 1e-5) > theorem(a, 1e-5)]
    assert fails[0] == pytest.approx(3.44, abs=0.02)
    assert theorem(30**0.5, 1e-5) == pytest.approx(31.8, abs=0.05)
    assert gaussian_epsilon(30**0.5, 1e-5) == pytest.approx(37.6, abs=0.05)


def test_an_epsilon_is_stated_where_theorem_and_sampler_reach() -> None:
    """At a = √5 the exact one alone, at a = √30 none: the sampler's error times e^ε is more than δ."""
    near, far = (local_privacy(Gaussian(np.ones(p), 1.0), delta=1e-5, diameter=1.0) for p in (5, 30))
    assert near.epsilon_exact == pytest.approx(gaussian_epsilon(5**0.5, 1e-5), rel=3e-3)
    assert near.epsilon_theorem is far.epsilon_theorem is far.epsilon_exact is None
    assert "a ≤ 2" in str(near.reason)
    assert "drawn finely enough for ε up to 13.8 at δ = 1e-05, and here it is 37.6" in str(far.reason)
