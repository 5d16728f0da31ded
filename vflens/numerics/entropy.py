"""The conditional entropy of a finite column given its reconstruction: RVG's second metric (§IX), in bits.

The mean squared error misses what an adversary learns up to a relabelling: x̂ = 1 − x has a large error and
determines x. H(X | X̂) is 0 exactly if the reconstruction determines the value, and H(X) if the two are
independent.
"""

import numpy as np

from vflens.array import Array

_ROWS_PER_CELL = 5  # rows that a cell of the joint table should hold, for a useful count
_BINS = 32


def entropy(x: Array) -> float:
    """H(X) of the values ``x`` (N,), N ≥ 1, in bits: their empirical frequencies, Miller–Madow corrected.

    A constant has entropy 0.
    """
    return _miller_madow(np.unique(x, return_counts=True)[1])


def conditional_entropy(x: Array, estimate: Array) -> float:
    """H(X | X̂) in bits, between 0 and H(X), with x̂ cut into classes.

    An x̂ with no more different values than x stays as it is. Any other is cut into at most 32 classes of
    equally many rows; few rows make fewer classes. Cutting can only raise H(X | X̂), and a whole row of x̂
    may determine more than one column does. So the entropy left to the adversary is at most this. It is at
    most Fano's bound too, of the share of rows in which the nearest value of x is wrong: 0 of none.

    Args:
        x: (N,) true values of a column with finitely many, N ≥ 1.
        estimate: (N,) the reconstruction of the same column, finite.
    """
    letters, symbol = np.unique(x, return_inverse=True)
    classes = _classes(estimate, len(letters))
    joint = _miller_madow(np.unique(classes * len(letters) + symbol, return_counts=True)[1])
    left = joint - _miller_madow(np.unique(classes, return_counts=True)[1])
    wrong = float((nearest_letters(letters, estimate) != x).mean())
    return float(np.clip(min(left, _fano(wrong, len(letters))), 0.0, entropy(x)))


def _fano(wrong: float, letters: int) -> float:
    """The most entropy left of one of ``letters`` where a guess is ``wrong`` in this share (Cover and Thomas,
    Elements of Information Theory, 2006, Theorem 2.10.1).
    """
    p = np.array([q for q in (wrong, 1 - wrong) if q])
    return float(-(p * np.log2(p)).sum() + wrong * np.log2(max(letters - 1, 1)))


def _classes(estimate: Array, letters: int) -> Array:
    """The class int (N,) of each estimate."""
    values, found = np.unique(estimate, return_inverse=True)
    if len(values) <= letters:
        return found
    bins = int(np.clip(len(estimate) // (_ROWS_PER_CELL * letters), 1, _BINS))
    edges = np.quantile(estimate, np.arange(1, bins) / bins)
    cut: Array = np.searchsorted(edges, estimate, side="right")
    return cut


def _miller_madow(counts: Array) -> float:
    """−Σ p log₂ p, plus (m − 1)/(2N ln 2): the first term of the plug-in estimate's bias (Miller, 1955)."""
    p = counts / counts.sum()
    return float(-(p * np.log2(p)).sum() + (len(counts) - 1) / (2 * counts.sum() * np.log(2)))


def nearest_letters(letters: Array, values: Array) -> Array:
    """The nearest of the ascending ``letters`` (m,) to each of ``values`` (n,), the lower of two."""
    above = np.searchsorted((letters[1:] + letters[:-1]) / 2, values)
    found: Array = letters[above]
    return found
