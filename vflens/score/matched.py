"""Reconstructed rows of a batch in no known order against the truth: the assignment of least error."""

from __future__ import annotations

import numpy as np

from vflens.types import Array


def matched_mse(guess: Array, truth: Array) -> tuple[float, Array]:
    """The mean squared error per number under the best one-to-one assignment, and the order int (n,) of
    ``guess`` that reaches it: row i of ``truth`` is guessed by row order[i].

    Args:
        guess: (n, d).
        truth: (n, d).

    Raises:
        ValueError: the shapes differ.
    """
    if guess.shape != truth.shape or truth.ndim != 2:
        raise ValueError(f"guessed rows {guess.shape} against {truth.shape}: give as many of the same width")
    from scipy.optimize import linear_sum_assignment  # slow to load, for few attacks
    from scipy.spatial.distance import cdist

    squares = cdist(truth, guess, "sqeuclidean")
    rows, order = linear_sum_assignment(squares)
    return float(squares[rows, order].sum() / truth.size), order


def blind_matched_mse(truth: Array, means: Array, rng: np.random.Generator) -> dict[str, float]:
    """:func:`matched_mse` of guesses without an attack, by name: 0, ½, the columns' ``means`` (d,), and one
    draw of n uniform rows, which gains from the assignment as an attack does.
    """
    guesses: dict[str, float | Array] = {
        "zero": 0.0,
        "half": 0.5,
        "column_means": means,
        "random": rng.random(truth.shape),
    }
    return {
        name: matched_mse(np.broadcast_to(guess, truth.shape), truth)[0] for name, guess in guesses.items()
    }
