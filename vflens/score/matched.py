"""Reconstructed rows of a batch in no known order against the truth: the assignment of least error."""

from __future__ import annotations

import numpy as np

from vflens.types import Array


def matched_mse(guess: Array, truth: Array) -> tuple[float, Array]:
    """The mean squared error per number under the best one-to-one assignment, and the order int (n,) of
    ``guess`` that reaches it: row i of ``truth`` is guessed by row order[i].

    Args:
        guess: (m, d), m ≥ n: where it is more, some are nobody's.
        truth: (n, d).

    Raises:
        ValueError: the widths differ, or there are fewer guesses than rows.
    """
    if truth.ndim != 2 or guess.shape[1:] != truth.shape[1:] or len(guess) < len(truth):
        raise ValueError(f"guessed rows {guess.shape} against {truth.shape}: give as many of the same width")
    from scipy.optimize import linear_sum_assignment  # slow to load, for few attacks
    from scipy.spatial.distance import cdist

    squares = cdist(truth, guess, "sqeuclidean")
    rows, order = linear_sum_assignment(squares)
    return float(squares[rows, order].sum() / truth.size), order


def blind_matched_mse(truth: Array, means: Array, rng: np.random.Generator, guesses: int) -> dict[str, float]:
    """:func:`matched_mse` of guesses without an attack, by name: 0, ½, the columns' ``means`` (d,), and one
    draw of as many uniform rows as an attack ``guesses``, which gains from the assignment as it does.
    """
    shape = guesses, truth.shape[1]
    blind: dict[str, float | Array] = {
        "zero": 0.0,
        "half": 0.5,
        "column_means": means,
        "random": rng.random(shape),
    }
    return {name: matched_mse(np.broadcast_to(guess, shape), truth)[0] for name, guess in blind.items()}
