"""A contract fails where a plug-in breaks it: made-up ones, each with one fault."""

from __future__ import annotations

import inspect
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import pytest
from brokenplugins import broken

from vflens.errors import KnowledgeError, PluginError
from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import Attack, LinearAttack, linear_estimate
from vflens.plugins.defense import Context, Defense
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS
from vflens.testing import (
    AttackContract,
    DatasetContract,
    DefenseContract,
    FamilyContract,
    LinearAttackContract,
)
from vflens.types import Array, Claim, Estimate, Knowledge, Phase, Point, RowStatus, statuses


class Plain(Attack):
    """Keeps every promise: half everywhere, from the scores alone."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SCORES})

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        status = statuses(len(view.rows))
        status[~np.isfinite(view.scores()).all(axis=1)] = RowStatus.SATURATED
        return Estimate(view.target, view.rows, self.values(view, rng), status)

    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.full((len(view.rows), 3), 0.5)


class GlobalDraws(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        np.random.seed(0)  # noqa: NPY002
        return np.full((len(view.rows), 3), np.random.random())  # noqa: NPY002


class SeedsAgain(Plain):
    """Leaves them each time in one state."""

    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        random.seed(0)
        return np.full((len(view.rows), 3), 0.5)


class Unseeded(Plain):
    rowwise: ClassVar[bool] = False

    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.random.default_rng().random((len(view.rows), 3))


class WrongWidth(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.full((len(view.rows), 4), 0.5)


class SinglePrecision(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.full((len(view.rows), 3), 0.5, np.float32)


class NotFinite(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.where(view.rows[:, None] == 3, np.nan, np.full((len(view.rows), 3), 0.5))


class Writing(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        for released in view._select(Point.MOMENTS, phases=frozenset(Phase)):
            for tensor in (released.tensors or {}).values():
                tensor[...] = 0.25
        return np.full((len(view.rows), 3), 0.5)


class Undeclared(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        view.moments()
        return np.full((len(view.rows), 3), 0.5)


class Hiding(Plain):
    """Reads what it does not declare, if it may."""

    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        with suppress(KnowledgeError):
            view.moments()
        return np.full((len(view.rows), 3), 0.5)


class InCompany(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.full((len(view.rows), 3), len(view.rows) / 100)


class Silent(Plain):
    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        view.scores()
        return Estimate(view.target, view.rows, self.values(view, rng), statuses(len(view.rows)))


class NoRows(Plain):
    def values(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        return np.full((len(view.rows), 3), 0.5 + 0 * view.rows.max())


SHAPES, NO_ROWS, READS = (
    "shapes_dtypes_and_finite_values",
    "no_rows_give_no_estimates",
    "reads_nothing_that_it",
)
ONE_BY_ONE, DRAWS = "rows_are_estimated_one_by_one", "draws_from_its_own_generator_only"


@pytest.mark.parametrize(
    ("kind", "failed"),
    [
        (Plain, set()),
        (GlobalDraws, {DRAWS}),
        (SeedsAgain, {DRAWS}),
        (Unseeded, {"same_seed_same_answer"}),
        (WrongWidth, {SHAPES, NO_ROWS}),
        (SinglePrecision, {SHAPES}),
        (NotFinite, {SHAPES}),
        (Writing, {"the_view_is_left_unchanged"}),
        (Undeclared, {f"{READS}_does_not_declare"}),
        (Hiding, {f"{READS}_does_not_declare"}),
        (InCompany, {ONE_BY_ONE}),
        (Silent, {"saturated_rows_get_a_status"}),
        (NoRows, {NO_ROWS}),
    ],
)
def test_a_broken_attack_fails(kind: type[Attack], failed: set[str]) -> None:
    assert broken(AttackContract, "attack", kind()) == failed


class Nearest(LinearAttack):
    def solve(self, A: Array, b: Array, *, rng: Any, moments: Any = None) -> Estimate:
        return linear_estimate(nearest_solution(A, b, np.full(A.shape[1], 0.5)), A, b)


class Rough(Nearest):
    """1e-6 off."""

    def solve(self, A: Array, b: Array, *, rng: Any, moments: Any = None) -> Estimate:
        return linear_estimate(nearest_solution(A, b, np.full(A.shape[1], 0.5)) + 1e-6, A, b)


class Transposed(Nearest):
    """Takes A x = b for Aᵀ A x = Aᵀ b with an inverse, which many systems have not."""

    def solve(self, A: Array, b: Array, *, rng: Any, moments: Any = None) -> Estimate:
        return linear_estimate(b @ A @ np.linalg.inv(A.T @ A), A, b)


class Unchecked(Nearest):
    def solve(self, A: Array, b: Array, *, rng: Any, moments: Any = None) -> Estimate:
        values = nearest_solution(A, b, np.full(A.shape[1], 0.5))
        return Estimate("", np.arange(len(b), dtype=np.int32), values, statuses(len(b)))


EXACT, BASIS = (
    "recovers_exactly_what_the_equations_determine",
    "the_basis_of_a_consistent_system_does_not_matter",
)
DEGENERATE, UNSOLVED = "degenerate_systems_are_defined", "rows_without_any_solution_get_a_status"


@pytest.mark.parametrize(
    ("kind", "failed"),
    [
        (Nearest, set()),
        (Rough, {EXACT}),
        (Unchecked, {UNSOLVED}),
        (Transposed, {BASIS, DEGENERATE, UNSOLVED}),
    ],
)
def test_a_broken_linear_attack_fails(kind: type[Attack], failed: set[str]) -> None:
    assert failed <= broken(LinearAttackContract, "attack", kind())
    assert failed or not broken(LinearAttackContract, "attack", kind())


@pytest.mark.parametrize("name", ["wmi", "gradient_clustering", "source_inference"])
def test_an_attack_that_the_contract_has_no_messages_for_is_told_how_to_test_it(name: str) -> None:
    made: Any = inspect.unwrap(vars(AttackContract)["world"])
    with pytest.raises(PluginError, match=r"is not for columns of softmax regression, .* vl\.run"):
        made(AttackContract(), ATTACKS.get(name)())


# -- defences


class Noisy(Defense):
    unclaimed: ClassVar[str] = "It is a test's."

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h + ctx.draw(lambda rng, n: rng.normal(size=(n, h.shape[1])))


class SingleNoise(Noisy):
    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h.astype(np.float32)


class FewerRows(Noisy):
    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h[:-1]


class GlobalNoise(Noisy):
    def on_embedding(self, h: Array, ctx: Context) -> Array:
        np.random.seed(0)  # noqa: NPY002
        return h + 1.0


class FreshNoise(Noisy):
    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h + np.random.default_rng().normal(size=h.shape)


class PerRequest(Noisy):
    """Its noise is that of the exchange: who asks often takes the mean."""

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h + ctx.stream().normal(size=h.shape)


class InPlace(Noisy):
    def on_embedding(self, h: Array, ctx: Context) -> Array:
        h.setflags(write=True)
        h += 1.0
        return h


class Mixing(Noisy):
    def on_gradient(self, g: Array, ctx: Context) -> Array:
        mean: Array = g.mean(axis=0)
        return g + mean


class Boasting(Defense):
    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        return log_c[:, ::-1]

    def claim(self, state: Mapping[str, Array]) -> Claim:
        return Claim(argmax=True)


class Mute(Defense):
    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        return log_c.copy()


class Actless(Defense):
    unclaimed: ClassVar[str] = "It does nothing."


class Renaming(Noisy):
    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array] | None:
        return {f"_{name}": value for name, value in w.items()}


KEEPS, REQUESTS = "keeps_shapes_and_float64", "a_prediction_row_is_the_same_in_every_request"
ROWS = "a_row_moves_others_at_the_gate_only_where_that_is_said"
CLAIMS = "overrides_a_hook_and_claims_something_or_says_why_not"


@pytest.mark.parametrize(
    ("kind", "failed"),
    [
        (Noisy, set()),
        (SingleNoise, {KEEPS}),
        (FewerRows, {KEEPS, ROWS, REQUESTS}),
        (GlobalNoise, {DRAWS}),
        (FreshNoise, {DRAWS, REQUESTS, ROWS}),
        (PerRequest, {REQUESTS}),
        (InPlace, {"never_writes_into_its_argument"}),
        (Mixing, {ROWS}),
        (Boasting, {"the_arg_max_stays_among_the_maximisers"}),
        (Mute, {CLAIMS}),
        (Actless, {CLAIMS}),
        (Renaming, {KEEPS}),
    ],
)
def test_a_broken_defence_fails(kind: type[Defense], failed: set[str]) -> None:
    found = broken(DefenseContract, "defense", kind())
    assert failed <= found
    assert failed or not found


@pytest.mark.parametrize(
    ("contract", "fixture"),
    [
        (AttackContract, "attack"),
        (DefenseContract, "defense"),
        (FamilyContract, "family"),
        (DatasetContract, "dataset"),
    ],
)
def test_a_fixture_that_nobody_overrides_says_so(contract: type, fixture: str) -> None:
    made: Any = inspect.unwrap(vars(contract)[fixture])
    with pytest.raises(
        NotImplementedError, match=f"override the fixture {fixture}: return one, such as Mine"
    ):
        made(contract())
