"""What the scores of others can be, where they fit no values within the bounds as they were given."""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from vflens.numerics.linear_system import RANGE_RTOL
from vflens.types import Array

_FEW = 0.02  # of rows may fit nothing in the right reading: rounding
_LEAST = 10  # rows that show a reading
_MOST_CLASSES = 5  # 119 other orders
_TRIED = 60  # rows
_CENT, _OFF = 100, 5  # rounded sums may miss it by so much
_FAR, _STEPS = 15.0, 400  # of a search


def unscaled(scores: Array) -> tuple[Array, str]:
    """``scores`` (N,) or (N, k) as probabilities that sum to 1, and what they were: "" if they are it."""
    if scores.ndim not in (1, 2) or not scores.size or scores.min() < 0:
        return scores, ""
    if np.isin(scores, (0, 1)).all():
        return scores, "they are labels, no probabilities: attacks that solve for values find little in them"
    alone = scores.ndim == 1 or scores.shape[1] == 1
    total = scores if alone else scores.sum(axis=1)
    if scores.max() > 1 and total.max() <= _CENT + _OFF and (alone or total.min() >= _CENT - _OFF):
        return scores / _CENT, "they are per cent"
    one_number = np.ptp(total) < _OFF / _CENT  # a sum of independent probabilities is none
    if alone or one_number or scores.min() == 0 or scores.max() >= 1:
        return scores, ""
    odds = scores / (1 - scores)
    return odds / odds.sum(axis=1, keepdims=True), "they are one-versus-rest, each class by itself"


def fits(impossible: Array) -> bool:
    """Whether so few rows fit nothing, bool (N,)."""
    return bool(impossible.mean() <= _FEW)


def other_orders(scores: Array, impossible: Callable[[Array], Array]) -> list[list[int]]:
    """The orders of the k classes in which ``scores`` (N, k) fit; ``impossible`` tells of each row."""
    tried, k = scores[:_TRIED], scores.shape[1]
    if len(tried) < _LEAST or k > _MOST_CLASSES:
        return []
    orders = (list(order) for order in permutations(range(k)) if order != tuple(range(k)))
    few = (order for order in orders if fits(impossible(tried[:_LEAST, order])))  # most fail soon
    return [order for order in few if fits(impossible(tried[:, order]))]


def one_versus_rest(scores: Array, known: Array, weight: Array) -> bool:
    """Whether ``scores`` (N, k) are those of k logistic models, scaled to sum to 1: their total before is one
    number for a row, and with the right one W u = logit(total · score) − known has a solution in the box.
    """
    tried, known, (k, d) = scores[:_TRIED], known[:_TRIED], weight.shape
    if len(tried) < _LEAST or d >= k or not (tried > 0).all():
        return False
    rows, inverse, at = np.arange(len(tried)), np.linalg.pinv(weight).T, np.zeros(len(tried))
    for width in (_FAR, 4 * _FAR / _STEPS, 16 * _FAR / _STEPS**2):  # logits of the largest share, ever finer
        largest = at + width * np.linspace(-1, 1, _STEPS)[:, None]
        total = 1 / (1 + np.exp(-largest)) / tried.max(axis=1)
        shares = total[:, :, None] * tried
        b = np.log(shares / (1 - shares)) - known
        u = b @ inverse
        off = np.linalg.norm(u @ weight.T - b, axis=2)
        best = off.argmin(axis=0)
        at = largest[best, rows]
    near = off[best, rows] <= 1e-4 * np.linalg.norm(b[best, rows], axis=1) + RANGE_RTOL
    inside = (np.abs(u[best, rows] - 0.5) <= 0.5 + 1e-3).all(axis=1)
    return fits(~(near & inside))
