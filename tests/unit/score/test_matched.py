"""Rows in no known order: the assignment against all permutations."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from vflens.score.batches import blind_matched_mse, matched_mse


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_the_assignment_is_the_best_of_all_permutations(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        guess, truth = rng.random((2, n, 3))
        every = {order: ((guess[list(order)] - truth) ** 2).mean() for order in permutations(range(n))}
        mse, order = matched_mse(guess, truth)
        assert mse == pytest.approx(min(every.values()), abs=1e-14)
        assert every[tuple(order.tolist())] == pytest.approx(mse, abs=1e-14)


def test_the_order_of_the_guesses_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    truth = rng.random((40, 5))
    places = rng.permutation(40)
    mse, order = matched_mse(truth[places], truth)
    assert mse == 0
    assert places[order].tolist() == list(range(40))


def test_blind_guesses_are_matched_alike() -> None:
    """One guess for all rows gains nothing; random rows do."""
    rng = np.random.default_rng(8)
    truth, means = rng.random((6, 2)), np.array([0.4, 0.6])
    blind = blind_matched_mse(truth, means, np.random.default_rng(9), len(truth))
    for name, guess in (("zero", 0.0), ("half", 0.5), ("column_means", means)):
        assert blind[name] == pytest.approx(((truth - guess) ** 2).mean(), abs=1e-14)
    drawn = np.random.default_rng(9).random((6, 2))
    every = [((drawn[list(order)] - truth) ** 2).mean() for order in permutations(range(6))]
    assert blind["random"] == pytest.approx(min(every), abs=1e-14)
    assert blind["random"] < np.mean(every)


def test_of_more_guesses_than_rows_some_are_nobodys() -> None:
    truth, spare = np.array([[0.2, 0.4], [0.9, 0.1]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    mse, order = matched_mse(np.concatenate([spare, truth]), truth)
    assert (mse, order.tolist()) == (0, [2, 3])
    means, drawn = np.zeros(2), np.random.default_rng(9).random((50, 2))
    blind = blind_matched_mse(truth, means, np.random.default_rng(9), 50)
    pairs = [((drawn[list(two)] - truth) ** 2).mean() for two in permutations(range(50), 2)]
    assert blind["random"] == pytest.approx(min(pairs), abs=1e-14)
    with pytest.raises(ValueError, match="give as many"):
        matched_mse(truth[:1], truth)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"guessed rows \(2, 3\) against \(3, 3\)"):
        matched_mse(np.zeros((2, 3)), np.zeros((3, 3)))
