"""`pytest` runs these: change them with the attack."""

import numpy as np
import pytest
from clamped_half_star import ClampedHalfStar

import vflens as vl
from vflens.testing import LinearAttackContract

RNG = np.random.default_rng(1)
X, A = RNG.uniform(size=(20, 4)), RNG.normal(size=(4, 4))


class TestClampedHalfStar(LinearAttackContract):
    """What VFLens relies on; AttackContract is that of an attack which is no LinearAttack."""

    @pytest.fixture
    def attack(self):
        return ClampedHalfStar()


def test_four_equations_determine_four_columns() -> None:
    found = vl.estimate("clamped_half_star", A, X @ A.T)
    np.testing.assert_allclose(found.values, X, atol=1e-6)


def test_two_equations_tell_more_than_one_half_and_no_value_leaves_the_box() -> None:
    found = vl.estimate("clamped_half_star", A[:2], X @ A[:2].T).values
    assert ((found - X) ** 2).mean() < ((0.5 - X) ** 2).mean()
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()
