"""What every attack on columns promises, and what one on A x = b does."""

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from vflens.errors import KnowledgeError, PluginError
from vflens.plugins.attack import Attack, LinearAttack
from vflens.testing.world import ROWS, SATURATED, SmallWorld, world_of
from vflens.types import Array, Estimate, Knowledge, Moments, Phase, RowStatus

#: How near an attack must come to a unique solution: rounding times the condition of these systems (< 1e3).
EXACT = 1e-9
DEGENERATE: Mapping[str, tuple[Array, Array]] = {
    "no equations": (np.zeros((0, 3)), np.zeros((2, 0))),
    "no rows": (np.eye(3), np.zeros((0, 3))),
    "a zero row": (np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[0.0, 1.0]])),
    "A = 0": (np.zeros((2, 3)), np.zeros((2, 2))),
    "an equation twice": (np.ones((2, 3)), np.ones((4, 2))),
    "one feature": (np.ones((1, 1)), np.array([[0.25]])),
}


@contextmanager
def nothing_drawn() -> Iterator[None]:
    """Asserts that the block leaves alone the generators that the whole process shares."""
    torch = sys.modules.get("torch")

    def states() -> str:
        of_torch = torch and torch.get_rng_state().tolist()
        return str((random.getstate(), np.random.get_state(legacy=False), of_torch))  # noqa: NPY002

    # One draw of each: a block that seeds them with one number each time would change nothing else.
    before = states(), random.random(), np.random.random(), torch and torch.rand(1), states()  # noqa: NPY002
    yield
    assert states() == before[-1]


def holds(attack: Attack | type[Attack]) -> bool:
    """Whether the world of :class:`AttackContract` has what ``attack`` is made for."""
    of_columns = attack.estimates == "features" and Knowledge.ARCHITECTURE not in attack.needs
    return of_columns and Attack.settings <= attack.settings  # the setting of those that name none


class AttackContract:
    """Derive ``TestMine`` from it; its fixture ``attack`` returns an attack with its settings."""

    @pytest.fixture
    def attack(self) -> Attack:
        raise NotImplementedError("override the fixture attack: return one, such as Mine()")

    @pytest.fixture
    def world(self, attack: Attack) -> SmallWorld:
        if not holds(attack):
            raise PluginError(
                f"{type(attack).__name__} is not for columns of softmax regression, of which AttackContract "
                "has messages: test it on a run, with vl.run(…, attacks=[…])"
            )
        return world_of(attack)

    def test_shapes_dtypes_and_finite_values(self, attack: Attack, world: SmallWorld) -> None:
        estimate = _run(attack, world)
        assert estimate.target == "second"
        assert estimate.values.shape == (ROWS, world.width)
        assert estimate.values.dtype == np.float64
        assert np.isfinite(estimate.values).all()
        np.testing.assert_array_equal(estimate.rows, np.arange(ROWS))
        assert set(estimate.status) <= {str(s) for s in RowStatus}
        assert {len(each) for each in (estimate.status, *estimate.extras.values())} == {ROWS}

    def test_no_rows_give_no_estimates(self, attack: Attack, world: SmallWorld) -> None:
        assert _run(attack, world, []).values.shape == (0, world.width)

    def test_same_seed_same_answer(self, attack: Attack, world: SmallWorld) -> None:
        assert _run(attack, world).values.tobytes() == _run(attack, world).values.tobytes()

    def test_draws_from_its_own_generator_only(self, attack: Attack, world: SmallWorld) -> None:
        with nothing_drawn():
            _run(attack, world)

    def test_the_view_is_left_unchanged(self, attack: Attack, world: SmallWorld) -> None:
        before = world.contents()
        _run(attack, world)
        assert world.contents() == before

    def test_reads_nothing_that_it_does_not_declare(self, attack: Attack, world: SmallWorld) -> None:
        needs, spied, read = attack.declared().needs, world.view(needs=frozenset()), set[Knowledge]()
        vars(spied)["_check"] = read.add  # it grants everything
        attack.reconstruct(spied, rng=np.random.default_rng(3))
        assert read <= needs
        for knowledge in read:
            with pytest.raises(KnowledgeError, match=f"read '{knowledge}' without declaring it"):
                attack.reconstruct(world.view(needs=needs - {knowledge}), rng=np.random.default_rng(3))

    def test_saturated_rows_get_a_status(self, attack: Attack, world: SmallWorld) -> None:
        """Where it needs a row's own scores."""
        declared = attack.declared()
        if Knowledge.SCORES in declared.needs and Phase.TRAIN not in declared.rows:
            saturated = np.isin(np.arange(ROWS), SATURATED)
            np.testing.assert_array_equal(_run(attack, world).status != RowStatus.OK, saturated)

    def test_rows_are_estimated_one_by_one(self, attack: Attack, world: SmallWorld) -> None:
        """Where it is ``rowwise``."""
        whole, order = _run(attack, world), np.random.default_rng(0).permutation(ROWS).tolist()
        for rows in (order, *([row] for row in order)) if attack.rowwise else ():
            found = _run(attack, world, rows)
            np.testing.assert_allclose(found.values, whole.values[rows], rtol=0, atol=1e-9)
            np.testing.assert_array_equal(found.status, whole.status[rows])


class LinearAttackContract(AttackContract):
    """The same for a :class:`vflens.plugins.attack.LinearAttack`."""

    @pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 1), (4, 4), (7, 4)])
    def test_recovers_exactly_what_the_equations_determine(
        self, attack: LinearAttack, m: int, d: int
    ) -> None:
        rng = np.random.default_rng(m)
        A, truth = rng.normal(size=(m, d)), rng.random((20, d))
        if _solves(attack):
            estimate = _solve(attack, A, truth @ A.T)
            np.testing.assert_allclose(estimate.values, truth, rtol=0, atol=EXACT)
            assert (estimate.status == RowStatus.OK).all()

    def test_the_basis_of_a_consistent_system_does_not_matter(self, attack: LinearAttack) -> None:
        rng = np.random.default_rng(1)
        A, T = rng.normal(size=(3, 7)), rng.normal(size=(3, 3))
        b = rng.random((20, 7)) @ A.T
        if _solves(attack):
            same, reference = _solve(attack, T @ A, b @ T.T), _solve(attack, A, b)
            np.testing.assert_allclose(same.values, reference.values, rtol=0, atol=EXACT)

    def test_rows_without_any_solution_get_a_status(self, attack: LinearAttack) -> None:
        A = np.array([[1.0, 2.0], [2.0, 4.0]])
        estimate = _solve(attack, A, np.array([[0.5, 1.0], [0.5, 2.0]]))
        assert list(estimate.status) == [RowStatus.OK, RowStatus.INCONSISTENT]

    @pytest.mark.parametrize("case", DEGENERATE)
    def test_degenerate_systems_are_defined(self, attack: LinearAttack, case: str) -> None:
        A, b = DEGENERATE[case]
        estimate = _solve(attack, A, b)
        assert estimate.values.shape == (len(b), A.shape[1])
        assert np.isfinite(estimate.values).all()
        assert (estimate.status == RowStatus.OK).all()


def _run(attack: Attack, world: SmallWorld, rows: Sequence[int] = range(ROWS)) -> Estimate:
    return attack.reconstruct(world.view(rows), rng=np.random.default_rng(3))


def _solves(attack: LinearAttack) -> bool:
    """Whether the equations alone determine its answer."""
    return attack.exact and Knowledge.SCORES in attack.needs


def _solve(attack: LinearAttack, A: Array, b: Array) -> Estimate:
    d = A.shape[1]
    moments = Moments(np.linspace(0.3, 0.6, d), np.diag(np.linspace(0.02, 0.1, d)))
    return attack.solve(A, b, rng=np.random.default_rng(3), moments=moments)
