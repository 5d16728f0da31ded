"""Several targets are solved for jointly, once, and no estimate changes another."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from clinicviews import released_by, scores_of, view_of
from scipy.special import log_softmax

from vflens import attacks
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.findings import Joint
from vflens.registry import ATTACKS
from vflens.types import (
    Array,
    Estimate,
    Moments,
    Point,
    Released,
    RowStatus,
)

# -- two passive parties, one system --------------------------------------------------------------------


def _federation() -> tuple[Array, dict[str, Array], list[Released]]:
    """Twelve rows, three classes, columns of both passive parties in name order; scores in two batches."""
    rng = np.random.default_rng(1)
    truth, y, bias = rng.random((12, 5)), rng.random((12, 1)), rng.normal(size=3)
    weight, own_weight = rng.normal(size=(3, 5)), rng.normal(size=(3, 1))
    log_c = log_softmax(truth @ weight.T + y @ own_weight.T + bias, axis=1)
    transcript = [
        released_by("wards", Point.PARAMETERS, {"weight": weight[:, 3:]}),
        released_by("insurer", Point.PARAMETERS, {"weight": weight[:, :3], "bias": bias}),
        scores_of([6, 7, 8, 9, 10, 11], log_c[6:], 0),
        scores_of([0, 1, 2, 3, 4, 5], log_c[:6], 1),
    ]
    own = {"features": y, "parameters": own_weight, "weight": weight}
    return truth, own, transcript


def test_two_passive_parties_are_solved_for_jointly() -> None:
    truth, own, transcript = _federation()
    A = np.diff(own["weight"], axis=0)
    joint = attacks.estimate("half_star", A, truth @ A.T).values
    rows = [11, 0, 5]
    for target, columns in (("insurer", slice(0, 3)), ("wards", slice(3, 5))):
        view = view_of(transcript, target=target, rows=rows, own=own, needs=LinearAttack.needs)
        estimate = ATTACKS.get("half_star")().reconstruct(view, rng=np.random.default_rng(0))
        np.testing.assert_allclose(estimate.values, joint[rows][:, columns], atol=1e-12)
        np.testing.assert_array_equal(estimate.rows, rows)
        np.testing.assert_allclose(estimate.extras["residual"], 0, atol=1e-12)
        assert estimate.target == target


class _Counting(LinearAttack):
    """Solves for nothing but counts, and draws if it is asked to."""

    calls: ClassVar[list[int]] = []
    draws: bool = False

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        self.calls.append(len(b))
        noise = rng.random((len(b), A.shape[1])) if self.draws else 0.25
        return linear_estimate(b @ np.linalg.pinv(A).T + noise, A, b)


@pytest.mark.parametrize(("draws", "solved"), [(False, [2, 3]), (True, [2, 2, 3, 3])])
def test_targets_share_one_joint_solution_unless_it_draws(draws: bool, solved: list[int]) -> None:
    _, own, transcript = _federation()
    attack, joint = _Counting(draws=draws), Joint()
    _Counting.calls.clear()
    alone = {}
    for rows in ([11, 0], [11, 0, 5]):
        for target in ("insurer", "wards"):
            seed = len(target)  # each target has a stream of its own
            view = view_of(transcript, target=target, rows=rows, own=own, needs=attack.needs, joint=joint)
            alone[len(rows), target] = attack.reconstruct(view, rng=np.random.default_rng(seed))
    assert _Counting.calls == solved
    for (n, target), shared in alone.items():
        view = view_of(transcript, target=target, rows=[11, 0, 5][:n], own=own, needs=attack.needs)
        again = attack.reconstruct(view, rng=np.random.default_rng(len(target)))
        assert shared.values.tobytes() == again.values.tobytes()
        assert shared.values.shape == (n, view.widths()[target])
        np.testing.assert_array_equal(shared.status, again.status)


def test_what_one_target_s_estimate_becomes_does_not_change_the_other_s() -> None:
    _, own, transcript = _federation()
    attack, joint = _Counting(), Joint()
    views = [
        view_of(transcript, target=t, rows=[1, 2], own=own, needs=attack.needs, joint=joint)
        for t in ("wards", "wards")
    ]
    first, second = (attack.reconstruct(view, rng=np.random.default_rng(0)) for view in views)
    kept = second.values.copy()
    first.values[:], first.status[:] = -1, RowStatus.AMBIGUOUS
    np.testing.assert_array_equal(second.values, kept)
    assert (second.status == RowStatus.OK).all()
    third = attack.reconstruct(views[0], rng=np.random.default_rng(0))
    np.testing.assert_array_equal(third.values, kept)


def test_another_attack_s_joint_solution_is_not_shared() -> None:
    _, own, transcript = _federation()
    joint = Joint()
    view = view_of(transcript, rows=[1, 2], own=own, needs=LinearAttack.needs, joint=joint)
    found = [ATTACKS.get(n)().reconstruct(view, rng=np.random.default_rng(0)) for n in ("half", "zero")]
    np.testing.assert_array_equal(found[0].values, np.full((2, 2), 0.5))
    np.testing.assert_array_equal(found[1].values, np.zeros((2, 2)))
