"""Labels behind the leaves of a first tree whose file states its numbers of rows.

LightGBM, CatBoost and scikit-learn write how many rows end in a leaf. All of them begin at the probability p,
and the leaf's value is η times the sum of Newton's steps Σ (y − p) / (Σ h + λ), with h = ``factor`` p (1 − p)
(Ke et al., 2017; Prokhorenkova et al., 2018). One step is linear in the number m of class 1; of several, each
from where the last one ended, the value grows with m, so m follows by bisection.
"""

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.boosting.rates import EPS, UntoldError
from vflens.numerics.boosting.trees import Tree

_WHOLE = 1e-3  # how far a number may be from a whole one, beside what single precision moves it by
_MOST_OFF = 0.05


@dataclass(frozen=True)
class StatedTraining:
    """What a file states of training: learning ``rate`` η, ``penalty`` λ, the ``factor`` of hessians and
    Newton's ``steps``. ``untold`` says why labels do not follow from them, ``uncounted`` why the covers are
    no numbers of rows, "" if it is not so.
    """

    rate: float = 1.0
    penalty: float = 0.0
    factor: float = 1.0
    steps: int = 1
    untold: str = ""
    uncounted: str = ""


def stated_rows(tree: Tree, of: StatedTraining) -> Array:
    """The rows int (L,) that end in each leaf, its cover.

    Raises:
        UntoldError: they are not counted, or not whole, as where rows had weights.
    """
    if of.uncounted:
        raise UntoldError(of.uncounted)
    rows = tree.cover[tree.leaves]
    if (rows % 1).any() or rows.min() < 0:
        raise UntoldError("its numbers of rows are not whole, so rows had weights")
    return rows.astype(int)


def stated_members(tree: Tree, p: float, of: StatedTraining) -> Array:
    """How many rows int (L,) of each leaf have the class of probability ``p`` before the tree, whose values
    are without the first score.

    Raises:
        UntoldError: they do not follow, or are not whole.
    """
    rows, value = stated_rows(tree, of), _step(tree, of)
    if of.steps == 1:
        found = rows * p + value * (rows * of.factor * p * (1 - p) + of.penalty)
    else:
        low, high = np.zeros(len(rows)), rows.astype(float)
        for _ in range(60):
            middle = (low + high) / 2
            below = _newton(middle, rows, p, of) < value
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found = (low + high) / 2
    whole, off = found.round(), _WHOLE + 8 * EPS * rows
    if (off > _MOST_OFF).any():
        raise UntoldError("single precision hides how many rows of its leaves have a class")
    fits = (np.abs(found - whole) <= off) & (whole >= 0) & (whole <= rows)
    if of.steps > 1:
        fits &= np.isclose(_newton(whole, rows, p, of), value, rtol=1e-5, atol=1e-7)
    if not fits.all():
        raise UntoldError("its values are not those of whole rows: rows had weights or other first scores")
    return whole.astype(int)


def stated_means(tree: Tree, base: float, of: StatedTraining) -> Array:
    """The mean label (L,) of each leaf of squared error.

    Raises:
        UntoldError: they do not follow.
    """
    rows = stated_rows(tree, of)
    left = of.penalty / np.maximum(rows + of.penalty, 1e-300)  # a step leaves this share of the way
    means: Array = base + _step(tree, of) / np.where(rows, 1 - left**of.steps, 1)
    return means


def _step(tree: Tree, of: StatedTraining) -> Array:
    """The leaves' values before they were shrunk (L,)."""
    if of.untold:
        raise UntoldError(of.untold)
    values: Array = tree.value[tree.leaves] / of.rate
    return values


def _newton(members: Array, rows: Array, p: float, of: StatedTraining) -> Array:
    """The sum of Newton's steps (L,) for so many of class 1."""
    score = start = np.full(len(rows), np.log(p / (1 - p)))
    for _ in range(of.steps):
        q = 0.5 * (1 + np.tanh(score / 2))
        score = score + (members - rows * q) / (rows * q * (1 - q) + of.penalty + 1e-300)
    total: Array = score - start
    return total
