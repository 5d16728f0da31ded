"""Attacks begin with what the adversary's own columns say: against the conditional mean of a Gaussian."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.covariance import ledoit_wolf

from vflens import attacks
from vflens.attacks.agnostic import Agnostic
from vflens.attacks.lmmse import LinearMMSE
from vflens.attacks.mean_star import MeanStar
from vflens.numerics.imputation import imputation
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    Knowledge,
    Moments,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
)

N, P, D = 4000, 2, 4  # rows, own columns, unknown ones
ATTACKED = np.arange(3000, N, dtype=np.int32)
NO_ROWS = np.zeros(0, np.int32)
READ = LinearMMSE.needs | LinearMMSE.helped_by | Agnostic.needs


class World:
    """A Gaussian inside [0, 1], of which all moments are known here; a softmax regression of three classes,
    so that two equations bind the unknown columns. ``parties`` of them hold the unknown columns.
    """

    def __init__(self, *, dependence: float = 1.0, parties: int = 1) -> None:
        rng = np.random.default_rng(4)
        root = rng.normal(size=(P + D, P + D))
        covariance = root @ root.T / 100
        covariance[:P, P:] *= dependence
        covariance[P:, :P] *= dependence
        scale = 0.12 / np.sqrt(np.diag(covariance))
        self.K, self.mean = covariance * np.outer(scale, scale), np.full(P + D, 0.5)
        rows = rng.multivariate_normal(self.mean, self.K, N)
        self.own, self.x = rows[:, :P], rows[:, P:]
        self.weight, own_weight = rng.normal(size=(3, D)), 0.3 * rng.normal(size=(3, P))
        logits = self.x @ self.weight.T + self.own @ own_weight.T
        self.labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        self.scores, self.own_weight = log_softmax(logits, axis=1), own_weight
        self.A = np.diff(self.weight, axis=0)
        self.blocks = {f"p{i}": block for i, block in enumerate(np.array_split(np.arange(D), parties))}

    def view(
        self,
        known: Mapping[str, Array],
        *,
        moments: bool = False,
        needs: frozenset[Knowledge] = READ,
        target: str = "p0",
    ) -> AdversaryView:
        """The active party's view, with the ``known`` rows of each party granted, or its exact moments."""
        sent = [
            _released(
                "coordinator", Phase.PREDICT, Point.SCORES, np.arange(N, dtype=np.int32), scores=self.scores
            )
        ]
        for i, (party, block) in enumerate(self.blocks.items()):
            bias = {"bias": np.zeros(3)} if i == 0 else {}
            sent.append(
                _released(
                    party, Phase.DISCLOSE, Point.PARAMETERS, NO_ROWS, weight=self.weight[:, block], **bias
                )
            )
            if moments:
                place = P + block
                exact = {"mean": self.mean[place], "covariance": self.K[np.ix_(place, place)]}
                sent.append(_released(party, Phase.DISCLOSE, Point.MOMENTS, NO_ROWS, **exact))
            if party in known:
                features = {"features": self.x[np.ix_(known[party], block)]}
                sent.append(_released(party, Phase.DISCLOSE, Point.AUXILIARY, known[party], **features))
        columns = {
            p: tuple(ColumnInfo(f"{p}{j}", 0.0, 1.0) for j in block) for p, block in self.blocks.items()
        }
        return AdversaryView(
            party="active",
            target=target,
            rows=ATTACKED,
            n_classes=3,
            transcript=Messages(sent),
            own={"features": self.own, "labels": self.labels, "parameters": self.own_weight},
            parties=[
                PartyInfo("active", Role.ACTIVE, n_classes=3),
                *(PartyInfo(p, Role.PASSIVE, columns=found) for p, found in columns.items()),
            ],
            needs=needs,
            phases=frozenset(Phase),
            training=np.arange(1000, dtype=np.int32),
        )

    @property
    def conditional(self) -> tuple[Array, Array]:
        """E[x | a] (n, d) of the attacked rows, and the covariance (d, d) that is left."""
        gain = np.linalg.solve(self.K[:P, :P], self.K[:P, P:])
        center = self.mean[P:] + (self.own[ATTACKED] - self.mean[:P]) @ gain
        return center, self.K[P:, P:] - self.K[P:, :P] @ gain

    @property
    def best(self) -> Array:
        """E[x | a, A x], as the conditional mean of the joint Gaussian of (a, A x, x)."""
        T = np.vstack([np.eye(P, P + D), np.hstack([np.zeros((2, P)), self.A])])
        seen = np.hstack([self.own, self.x @ self.A.T])[ATTACKED]
        gain = np.linalg.solve(T @ self.K @ T.T, T @ self.K[:, P:])
        found: Array = self.mean[P:] + (seen - T @ self.mean) @ gain
        return found

    def error(self, values: Array) -> float:
        return float(((values - self.x[ATTACKED]) ** 2).mean())


def _released(sender: str, phase: Phase, point: Point, rows: Array, **tensors: Array) -> Released:
    return Released(sender, Exchange("run", phase, 0, 0), point, rows, tensors=tensors)


def _estimate(attack: Attack, view: AdversaryView) -> Array:
    return attack.reconstruct(view, rng=np.random.default_rng(0)).values


MANY = np.arange(3000, dtype=np.int32)


def test_lmmse_is_the_conditional_mean_given_own_columns_too() -> None:
    world = World()
    found = _estimate(LinearMMSE(), world.view({"p0": MANY}))
    np.testing.assert_allclose(found, world.best, atol=0.02)
    unconditional = attacks.estimate(
        "lmmse", world.A, world.x[ATTACKED] @ world.A.T, moments=Moments(world.mean[P:], world.K[P:, P:])
    ).values
    assert world.error(found) < 0.8 * world.error(unconditional)


def test_mean_star_is_the_solution_nearest_to_the_conditional_mean() -> None:
    world = World()
    found = _estimate(MeanStar(), world.view({"p0": MANY}))
    inverse = np.linalg.pinv(world.A)
    center, _ = world.conditional
    nearest = center + (world.x[ATTACKED] - center) @ (inverse @ world.A).T
    np.testing.assert_allclose(found, nearest, atol=0.02)
    np.testing.assert_allclose(found @ world.A.T, world.x[ATTACKED] @ world.A.T, atol=1e-9)


def test_agnostic_begins_with_the_conditional_mean_where_rows_are_known() -> None:
    world = World()
    without = _estimate(Agnostic(), world.view({}))
    with_rows = _estimate(Agnostic(), world.view({"p0": MANY}))
    assert world.error(with_rows) < 0.8 * world.error(without)
    A, moved = world.A, (with_rows - without)
    np.testing.assert_allclose(moved @ A.T, 0, atol=1e-9)  # the same equations, another centre


@pytest.mark.parametrize("attack", [LinearMMSE(), MeanStar()], ids=["lmmse", "mean_star"])
def test_own_columns_that_say_nothing_change_nothing(attack: Attack) -> None:
    """Exact moments are granted, and thirty rows: these only mislead."""
    world, few = World(dependence=0.0), np.arange(30, dtype=np.int32)
    plain = _estimate(attack, world.view({}, moments=True))
    np.testing.assert_array_equal(_estimate(attack, world.view({"p0": few}, moments=True)), plain)


@pytest.mark.parametrize("attack", [LinearMMSE(), MeanStar()], ids=["lmmse", "mean_star"])
def test_without_the_declared_use_of_rows_nothing_changes(attack: Attack) -> None:
    """It is an attack that takes one mean for all rows."""
    world = World()
    plain = _estimate(attack, world.view({}, moments=True))
    unread = world.view({"p0": MANY}, moments=True, needs=attack.needs)
    np.testing.assert_array_equal(_estimate(attack, unread), plain)


@pytest.mark.parametrize("second", [MANY, np.arange(1, 3000, 2, dtype=np.int32), NO_ROWS + 0, None])
def test_of_several_parties_each_is_imputed_from_its_own_rows(second: Array | None) -> None:
    """Rows in common, half of them, none: an odd and an even half; a party that granted none."""
    world = World(parties=2)
    even = np.arange(0, 3000, 2, dtype=np.int32)
    first = even if second is not None and not len(second) else MANY
    other = np.arange(1, 3000, 2, dtype=np.int32) if second is not None and not len(second) else second
    known = {"p0": first} if other is None else {"p0": first, "p1": other}
    found = np.hstack(
        [_estimate(MeanStar(), world.view(known, moments=True, target=t)) for t in ("p0", "p1")]
    )
    plain = np.hstack([_estimate(MeanStar(), world.view({}, moments=True, target=t)) for t in ("p0", "p1")])
    if other is None:
        np.testing.assert_array_equal(found, plain)
    else:
        assert world.error(found) < 0.9 * world.error(plain)


def test_few_rows_are_used_where_they_help_on_rows_left_out() -> None:
    """Weakly dependent columns and twelve known rows: by hand, in the closed form of both estimates."""
    world, chosen, due = World(dependence=0.3), [], []
    plain = _estimate(LinearMMSE(), world.view({}, moments=True))
    for start in range(0, 360, 30):
        known = np.arange(start, start + 12, dtype=np.int32)
        found = _estimate(LinearMMSE(), world.view({"p0": known}, moments=True))
        chosen.append(not np.array_equal(found, plain))
        left_out = imputation(world.own[known], world.x[known]).left_out
        beliefs = ((left_out, ledoit_wolf(left_out)[0]), (world.x[known] - world.mean[P:], world.K[P:, P:]))
        given_own, unconditional = (_left(world, away, K) for away, K in beliefs)
        due.append(given_own < unconditional)
    assert chosen == due
    assert 0 < sum(chosen) < 12


def _left(world: World, away: Array, K: Array) -> float:
    """The squares that the equations leave of rows which are ``away`` from their belief."""
    gain = K @ world.A.T @ np.linalg.inv(world.A @ K @ world.A.T)
    return float(((away - away @ (gain @ world.A).T) ** 2).sum())
