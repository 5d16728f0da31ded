"""Discretisation and averaging of gradients against definitions by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from vflens.defenses.averaging import Averaging
from vflens.defenses.discretisation import Discretisation
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Exchange, Owner, Phase


def _sent(defense: Defense, g: Array) -> Array:
    rows = np.arange(len(g), dtype=np.int32)
    context = Context(
        Owner("active"),
        Exchange("run", Phase.TRAIN, 0, 0),
        rows,
        {},
        hook="on_gradient",
        position=0,
        secret=b"s",
    )
    return defense.on_gradient(g, context)


@pytest.mark.parametrize("count", [2, 3, 12])
def test_every_number_becomes_the_nearest_level(count: int) -> None:
    g = np.random.default_rng(count).standard_t(3, size=(40, 6))  # some numbers beyond two deviations
    low, high = g.mean() - 2 * g.std(), g.mean() + 2 * g.std()
    levels = [low + (high - low) * i / (count - 1) for i in range(count)]
    nearest = [[min(levels, key=lambda level: abs(level - number)) for number in row] for row in g]
    assert (g > high).any()
    sent = _sent(Discretisation(levels=count), g)
    np.testing.assert_allclose(sent, nearest, rtol=1e-12, atol=1e-12)
    assert len(np.unique(sent)) <= count == Discretisation(levels=count).claim({}).levels


def test_equal_numbers_stay_as_they_are() -> None:
    same = np.full((3, 2), 0.7)
    np.testing.assert_allclose(_sent(Discretisation(), same), same, rtol=1e-12)


@pytest.mark.parametrize(("n", "sizes"), [(12, [4, 4, 4]), (11, [4, 7]), (7, [7]), (3, [3]), (1, [1])])
def test_each_row_gets_the_mean_of_its_group(n: int, sizes: list[int]) -> None:
    g = np.random.default_rng(n).normal(size=(n, 5))
    parts = np.split(g, np.cumsum(sizes)[:-1])
    expected = np.concatenate([np.tile(part.mean(axis=0), (len(part), 1)) for part in parts])
    sent = _sent(Averaging(rows=4), g)
    np.testing.assert_allclose(sent, expected, rtol=1e-12)
    np.testing.assert_allclose(sent.sum(axis=0), g.sum(axis=0), rtol=1e-12)


def test_a_row_shares_its_gradient_with_as_many_as_claimed_and_no_fewer_would_do() -> None:
    claimed = Averaging(rows=5).claim({}).group_rows
    fewest = {
        n: np.unique(
            _sent(Averaging(rows=5), np.random.default_rng(n).normal(size=(n, 3))), axis=0, return_counts=True
        )[1].min()
        for n in range(5, 40)
    }
    assert min(fewest.values()) == claimed == 5
