"""Sites named from scores, and the permutation null beside them: against all permutations, and over seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.numerics.measures.permuted import permuted
from vflens.numerics.membership import source_beliefs
from vflens.types import Array

SITES, REPEATED = 3, 200


def counts(classes: Array, sites: Array, named: Array, k: int = SITES) -> Array:
    found = np.zeros((classes.max() + 1, k, k))
    np.add.at(found, (classes, sites, named), 1)
    return found


def _orders(classes: Array, sites: Array) -> Iterator[Array]:
    """Every order of the sites within each class."""
    rows = [np.flatnonzero(classes == c) for c in np.unique(classes)]
    for orders in product(*(permutations(of_class) for of_class in rows)):
        moved = sites.copy()
        for of_class, order in zip(rows, orders, strict=True):
            moved[of_class] = sites[list(order)]
        yield moved


@pytest.mark.parametrize("seed", range(5))
def test_the_null_is_that_of_all_permutations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, sites = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2]), np.array([0, 1, 2, 0, 0, 1, 1, 2, 2])
    named = rng.integers(0, SITES, len(sites))

    def share(of: Array) -> float:
        return float(np.mean([(named == of)[of == s].mean() for s in range(SITES)]))

    shares = [share(moved) for moved in _orders(classes, sites)]
    found = permuted(counts(classes, sites, named))
    assert found.share == pytest.approx(share(sites))
    assert found.mean == pytest.approx(np.mean(shares))
    assert found.deviation == pytest.approx(np.std(shares))


def test_who_names_one_site_always_finds_nothing() -> None:
    sites = np.arange(60) % SITES
    found = permuted(counts(np.zeros(60, int), sites, np.zeros(60, int)))
    assert found.share == pytest.approx(found.mean) == pytest.approx(1 / SITES)
    assert found.deviation == pytest.approx(0)


def finding(
    rng: np.random.Generator, n: int, *, shift: float = 0.0, rates: bool = False, turned: bool = False
) -> Finding:
    """``n`` rows of each site, as many known ones: log-probabilities of two classes, whose log-odds
    follow from the class, and by ``shift`` from the site, ``turned`` in the second class; with ``rates`` a
    site has classes of its own.
    """

    def drawn() -> tuple[Array, Array, Array]:
        sites = np.arange(SITES).repeat(n)
        classes = (rng.random(len(sites)) < (0.2 + 0.3 * sites if rates else 0.5)).astype(int)
        sign = 1 - 2 * classes if turned else 1
        odds = 6 * classes - 3 + shift * (sites - 1) * sign + rng.standard_normal(len(sites))
        return sites, classes, np.column_stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)])

    (known_sites, _, known), (sites, classes, scores) = drawn(), drawn()
    named = source_beliefs(scores, [known[known_sites == s] for s in range(SITES)]).argmax(axis=1)
    null = permuted(counts(classes, sites, named))
    place = {"subject": "which", "attack": "a", "target": "t", "scored_set": "predict", "guess": ""}
    figures = {"value": null.share, "blind": null.mean, "deviation": null.deviation}
    return Finding(quantity=Quantity.SITES, rows=SITES * n, **place, **figures)  # type: ignore[arg-type]


@pytest.mark.parametrize("rates", [False, True])
@pytest.mark.parametrize("n", [20, 300])
def test_nothing_is_found_of_sites_that_are_alike_in_each_class(n: int, rates: bool) -> None:
    """In 5 % of the repetitions at most, also where sites have other rates of classes."""
    states = [finding(np.random.default_rng((s, n)), n, rates=rates).state for s in range(REPEATED)]
    assert states.count(State.FOUND) <= 0.05 * REPEATED


def test_sites_that_differ_the_other_way_in_another_class_are_found() -> None:
    """Rows of one class are told by those of it alone: together the sites have one mean."""
    found = [finding(np.random.default_rng(s), 300, shift=0.4, turned=True).state for s in range(20)]
    assert found.count(State.FOUND) >= 19


def test_the_deviation_of_the_null_decides() -> None:
    """A guess that is drawn anew with each row would leave it open."""
    figures = {"value": 0.385, "blind": 0.34, "rows": 600}
    place = {"subject": "which", "attack": "a", "target": "t", "scored_set": "predict"}
    beside = Finding(quantity=Quantity.SITES, deviation=0.02, **figures, **place)  # type: ignore[arg-type]
    assert beside.state is State.FOUND
    assert replace(beside, deviation=None).state is State.UNDECIDED
    assert replace(beside, deviation=0.03).state is State.UNDECIDED
    assert replace(beside, tries=5).state is State.UNDECIDED


def test_sites_that_differ_are_found_and_more_rows_decide() -> None:
    found = [finding(np.random.default_rng(s), 300, shift=0.4).state for s in range(100)]
    assert found.count(State.FOUND) >= 95
    few = [finding(np.random.default_rng(s), 20, shift=0.3) for s in range(20)]
    open_ones = [f for f in few if f.state is State.UNDECIDED]
    assert open_ones
    assert all(f.rows_needed > f.rows for f in open_ones)


def test_many_alike_rows_are_not_found() -> None:
    states = [finding(np.random.default_rng(s), 4000).state for s in range(10)]
    assert states.count(State.NOT_FOUND) >= 9


def test_fewer_than_fifty_rows_decide_nothing() -> None:
    found = finding(np.random.default_rng(1), 16, shift=9)
    assert found.state is State.UNDECIDED
    assert found.rows_needed == 50


def test_a_class_without_known_rows_of_a_site_is_not_its() -> None:
    known = [np.log([[0.9, 0.1], [0.8, 0.2]]), np.log([[0.2, 0.8], [0.3, 0.7]])]
    beliefs = source_beliefs(np.log([[0.6, 0.4], [0.4, 0.6]]), known)
    np.testing.assert_array_equal(beliefs.argmax(axis=1), [0, 1])
    assert np.isfinite(beliefs).all()


def test_beliefs_do_not_depend_on_the_order_of_rows_or_on_the_first_class() -> None:
    rng = np.random.default_rng(4)
    known, asked = [rng.dirichlet([1, 2, 3], 400) for _ in range(2)], rng.dirichlet([1, 2, 3], 30)
    beliefs = source_beliefs(np.log(asked), [np.log(k) for k in known])
    turned = source_beliefs(np.log(asked[::-1, ::-1]), [np.log(k[:, ::-1]) for k in known])
    np.testing.assert_allclose(turned[::-1], beliefs, rtol=1e-9)
