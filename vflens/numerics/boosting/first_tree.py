"""How many training rows end in each leaf of a class's first tree, and how many of them have that class.

Before the first tree all rows have the base score p. A row has g = p − y and h = p (1 − p), a row of class 1
``weight`` (XGBoost's ``scale_pos_weight``) times that. So of n₀ rows and n₁ of class 1 in a leaf

    H = (n₀ + w n₁) p (1 − p)   and   G = (n₀ + w n₁) p − w n₁,

and G follows from the leaf's value: see :mod:`vflens.numerics.boosting.rates`. TimberStrike (Di Gennaro et
al., 2025, arXiv 2506.07605) begins so: first-tree probing. Of k classes each has its own trees: G is the same
with p and y of that class, and XGBoost takes H = Σ 2 p_i (1 − p_i). With squared error h = 1, so H is n.
"""

from collections.abc import Sequence

import numpy as np

from vflens.array import Array
from vflens.numerics.boosting.rates import EPS, UntoldError, rates
from vflens.numerics.boosting.trees import Tree

_SINGLE = 2e-6  # relative, of numbers in single precision: more than a leaf's rounding
_WHOLE = 0.05  # how far a number of rows may be from a whole one


def leaf_counts(
    trees: Sequence[Tree], score: Array, base: Array, weight: float = 1.0
) -> list[tuple[Array, Array]]:
    """Of each score numbers of training rows, and of those of its class, int (L,) in its first tree's leaves.

    Args:
        trees: in order, of logistic loss for one score, which is that of class 1; else of softmax.
        score: int (T,), the score to which each tree adds.
        base: (k,), the probability of each score's class before its first tree.
        weight: of a row of class 1, that of others is 1.

    Raises:
        UntoldError: the file does not fit the formulas, or single precision tells no whole numbers, as in
            leaves of 225,000 rows.
    """
    if not weight > 0:
        raise UntoldError(f"scale_pos_weight is {weight:g}")
    found, counts = rates(trees), []
    for k, p in enumerate(base.tolist()):
        first = trees[int(np.argmax(score == k))]
        with np.errstate(all="ignore"):  # of numbers that no training gives
            G, off = found.gradients(first)
            total = first.cover[first.leaves] / (min(len(base), 2) * p * (1 - p))
            off_total = total * (_SINGLE + 4 * EPS * p / (1 - p))
            of_class, off = (total * p - G) / weight, (off + off_total) / weight
            rows = _whole(total - (weight - 1) * of_class, off_total + abs(weight - 1) * off, 1)
            counts.append((rows, _whole(of_class, off, 0, rows)))
    return counts


def leaf_rows(tree: Tree) -> Array:
    """The rows int (L,) that end in each leaf of a tree of squared error: a row's hessian is 1.

    Raises:
        UntoldError: they are not whole.
    """
    cover, inner = tree.cover, tree.feature >= 0
    parts = cover[tree.left[inner]] + cover[tree.right[inner]]
    if (np.abs(parts - cover[inner]) > 2 * EPS * parts).any() or not (cover > 0).all():
        raise UntoldError("its sum_hessian are no sums of rows")
    return _whole(cover[tree.leaves], EPS * cover[tree.leaves], 1)


def _whole(numbers: Array, off: Array, least: int, most: Array | float = np.inf) -> Array:
    """The whole numbers (L,) from ``least`` to ``most`` next to these; rounding moved them by ``off``.

    Raises:
        UntoldError: they are none, or rounding hides which.
    """
    found = numbers.round()
    if not (_WHOLE + off < 0.5).all():
        raise UntoldError("single precision hides the number of rows in its leaves")
    if (np.abs(numbers - found) > _WHOLE + off).any() or ((found < least) | (found > most)).any():
        raise UntoldError("its numbers of rows are not whole, so rows had weights or other first scores")
    return found.astype(int)
