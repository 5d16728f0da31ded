"""The finite-alphabet attack against brute force, and the conditional entropy against the definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.optimize import linprog

from vflens import attacks
from vflens.attacks.finite_alphabet import FiniteAlphabet
from vflens.errors import ProtocolError
from vflens.numerics.entropy import conditional_entropy, entropy
from vflens.numerics.estimators.combinations import halves, solutions
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Knowledge, PartyInfo, Phase, Role, RowStatus

BINARY = (0.0, 1.0)


def _sample(rng: np.random.Generator, n: int, alphabets: tuple[tuple[float, ...] | None, ...]) -> Array:
    drawn = [rng.random(n) if a is None else rng.choice(np.array(a), n) for a in alphabets]
    return np.column_stack(drawn)


# -- the search ----------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_the_search_finds_what_brute_force_finds(seed: int, m: int, sizes: list[int]) -> None:
    """Integer coefficients: many combinations have equal sums."""
    rng = np.random.default_rng(seed)
    letters = [np.linspace(0, 1, size) if size > 1 else np.array([0.5]) for size in sizes]
    A = rng.integers(-2, 3, size=(m, len(sizes))).astype(float)
    everything = np.array(list(product(*letters)))
    b = np.vstack([everything[rng.integers(0, len(everything), 3)] @ A.T, np.full((1, m), 99.0)])
    sides = halves(letters, 1000)
    assert sides is not None
    found = solutions(A, b, letters, sides, np.full(4, 1e-9))
    for row in range(4):
        fits = everything[np.linalg.norm(everything @ A.T - b[row], axis=1) < 1e-6]
        mine = found.values[found.rows == row]
        assert sorted(map(tuple, mine.round(9))) == sorted(map(tuple, fits.round(9)))
    assert found.complete.all()


def test_a_row_with_too_many_combinations_is_given_up() -> None:
    letters = [np.array(BINARY)] * 26
    sides = halves(letters, 1 << 13)
    assert sides is not None
    found = solutions(np.ones((1, 26)), np.array([[13.0], [0.0]]), letters, sides, np.full(2, 1e-9))
    assert list(found.complete) == [False, True]
    assert len(found.rows) == 1


def test_halves_respect_the_budget() -> None:
    letters = [np.arange(n) / 10 for n in (2, 9, 3, 4)]
    sides = halves(letters, 18)
    assert sides is not None
    assert sorted(sides[0] + sides[1]) == [0, 1, 2, 3]
    assert all(np.prod([len(letters[j]) for j in side]) <= 18 for side in sides)
    assert halves(letters, 8) is None
    assert halves([], 1) == ([], [])


# -- the attack ----------------------------------------------------------------------------------------


def test_one_equation_gives_twenty_binary_columns() -> None:
    """D = 20 unknowns, k = 2: half* cannot do better than blind on most, here everything is recovered."""
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(1, 20)), _sample(rng, 50, (BINARY,) * 20)
    estimate = attacks.estimate("finite_alphabet", A, x @ A.T, alphabets=(BINARY,) * 20)
    np.testing.assert_array_equal(estimate.values, x)
    assert (estimate.extras["candidates"] == 1).all()
    assert ((attacks.estimate("half_star", A, x @ A.T).values - x) ** 2).mean() > 0.2


def test_free_columns_are_eliminated_then_filled_in() -> None:
    rng = np.random.default_rng(1)
    alphabets = (None, BINARY, (0.0, 0.5, 1.0), None, BINARY)
    A, x = rng.normal(size=(3, 5)), _sample(rng, 40, alphabets)
    values = attacks.estimate("finite_alphabet", A, x @ A.T, alphabets=alphabets).values
    np.testing.assert_allclose(values, x, atol=1e-7)  # three equations: one decides, two give the free ones


def test_several_fits_are_averaged() -> None:
    estimate = attacks.estimate(
        "finite_alphabet", [[1.0, 1.0, 0.0]], [[1.0], [2.0], [0.3]], alphabets=(BINARY,) * 3
    )
    np.testing.assert_allclose(estimate.values[:2], [[0.5, 0.5, 0.5], [1, 1, 0.5]])
    assert list(estimate.extras["candidates"]) == [2, 1, 0]
    assert list(estimate.status) == [RowStatus.OK, RowStatus.OK, RowStatus.INCONSISTENT]


def test_a_column_without_a_coefficient_is_answered_by_the_mean_of_its_letters() -> None:
    """The mean of all that fits, by brute force; its letters do not count among the candidates."""
    alphabets, A, b = ((0.0, 0.1), BINARY, BINARY), np.array([[0.0, 1.0, 2.0]]), np.array([[2.0]])
    fits = [x for x in product(*alphabets) if A @ np.array(x) == b]
    found = attacks.estimate("finite_alphabet", A, b, alphabets=alphabets)
    np.testing.assert_allclose(found.values, [np.mean(fits, axis=0)])
    assert found.extras["candidates"].tolist() == [1]


def test_without_pure_equations_or_beyond_the_budget_it_is_rcc2() -> None:
    rng = np.random.default_rng(2)
    A, x = rng.normal(size=(2, 6)), rng.random((10, 6)).round()
    expected = attacks.estimate("rcc2", A, x @ A.T).values
    for alphabets, budget in (
        ((None,) * 2 + (BINARY,) * 4, 100),
        ((BINARY,) * 6, 7),
        ((None,) * 6, 9),
        (None, 9),
    ):
        got = attacks.estimate("finite_alphabet", A, x @ A.T, alphabets=alphabets, budget=budget)
        np.testing.assert_allclose(got.values, expected)
        assert (got.extras["candidates"] == -1).all()


def test_its_answer_is_what_integer_programming_finds() -> None:
    """Independent route: SciPy's HiGHS maximises a random objective over the same mixed-integer set."""
    rng = np.random.default_rng(3)
    A, x = rng.normal(size=(2, 8)), rng.integers(0, 2, size=(5, 8)).astype(float)
    values = attacks.estimate("finite_alphabet", A, x @ A.T, alphabets=(BINARY,) * 8).values
    solved = [
        linprog(rng.normal(size=8), A_eq=A, b_eq=A @ row, bounds=(0, 1), integrality=np.ones(8)).x
        for row in x
    ]
    np.testing.assert_allclose(values, solved, atol=1e-6)


def test_alphabets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ProtocolError, match="alphabets names 1 column and A has 2: give one entry per column"
    ):
        attacks.estimate("finite_alphabet", [[1.0, 2.0]], [[1.0]], alphabets=(BINARY,))
    with pytest.raises(ValidationError, match="at least 1 item"):
        FiniteAlphabet(alphabets=((),))


def test_the_alphabets_come_from_the_metadata_scaled() -> None:
    columns = (
        ColumnInfo("codes", 0.0, 3.0, alphabet=(0.0, 1.0, 2.0, 3.0)),
        ColumnInfo("free", 0.0, 9.0),
        ColumnInfo("undeclared", alphabet=(2.0, 4.0, 10.0)),
    )
    seen: list[tuple[tuple[float, ...] | None, ...] | None] = []

    class Spy(FiniteAlphabet):
        def solve(self, A: Array, b: Array, **given: object) -> object:  # type: ignore[override]
            seen.append(self.alphabets)
            return super().solve(A, b, **given)  # type: ignore[arg-type]

    view = AdversaryView(
        party="active",
        target="passive",
        rows=np.zeros(0, np.int32),
        n_classes=3,
        transcript=Messages(),
        own={},
        parties=[PartyInfo("active", Role.ACTIVE), PartyInfo("passive", Role.PASSIVE, columns=columns)],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
    )
    assert view.unknown_columns() == columns
    view._scores = lambda: np.zeros((1, 3))  # type: ignore[method-assign]
    view.rows = np.zeros(1, np.int32)
    view.unknown_parameters = lambda: (np.ones((3, 3)), np.zeros(3))  # type: ignore[method-assign]
    view.own_logits = lambda *_: np.zeros((1, 3))  # type: ignore[method-assign]
    Spy().reconstruct(view, rng=np.random.default_rng(0))
    assert seen == [((0.0, 1 / 3, 2 / 3, 1.0), None, (0.0, 0.25, 1.0))]


# -- conditional entropy -------------------------------------------------------------------------------


def test_entropy_of_known_distributions() -> None:
    rng = np.random.default_rng(4)
    p = np.array([0.5, 0.25, 0.125, 0.125])
    estimates = [entropy(rng.choice(4, size=60, p=p)) for _ in range(400)]
    assert np.mean(estimates) == pytest.approx(1.75, abs=0.02)  # without the correction: 1.71
    assert entropy(np.zeros(9)) == 0.0


def test_conditional_entropy_of_a_noisy_channel() -> None:
    """X a fair bit, x̂ right with probability .9: H(X|X̂) = −.9 log₂ .9 − .1 log₂ .1 = .469."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, 20_000).astype(float)
    guess = np.where(rng.random(20_000) < 0.9, x, 1 - x)
    assert conditional_entropy(x, guess) == pytest.approx(0.469, abs=0.01)
    spread = guess + rng.normal(0, 1e-3, 20_000)  # as many values as rows: cut into classes
    assert conditional_entropy(x, spread) == pytest.approx(0.469, abs=0.01)


def test_a_relabelling_tells_everything_and_an_independent_guess_nothing() -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 3, 3000) / 2
    assert conditional_entropy(x, 1 - x) == 0.0
    assert ((1 - x - x) ** 2).mean() > 0.3  # which the mean squared error takes for a failure
    assert conditional_entropy(x, rng.random(3000)) == pytest.approx(np.log2(3), abs=0.02)
    assert conditional_entropy(x, np.full(3000, 0.5)) == pytest.approx(entropy(x))


def test_an_estimate_that_is_right_in_every_row_leaves_nothing() -> None:
    """Classes of equally many rows straddle two values of x: a quarter of ones, say."""
    rng = np.random.default_rng(8)
    x = (np.arange(59) < 14).astype(float)
    assert conditional_entropy(x, x + rng.normal(0, 1e-3, 59)) == 0.0


def test_few_rows_are_not_overinterpreted() -> None:
    """20 letters in 50 rows: as many classes as rows would make every reconstruction look perfect."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 20, 50) / 19
    assert conditional_entropy(x, rng.random(50)) > 0.9 * entropy(x)
    assert conditional_entropy(x[:1], x[:1]) == 0.0
