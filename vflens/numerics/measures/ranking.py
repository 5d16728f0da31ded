"""How well scores rank the members of a class before all others."""

import numpy as np

from vflens.array import Array


def accuracy(log_c: Array, labels: Array) -> float:
    """Share of rows whose first arg-max is the label."""
    return float((log_c.argmax(axis=1) == labels).mean())


def auc(scores: Array, labels: Array) -> float:
    """Area under the ROC curve, one class against the rest, mean over the classes present; NaN for a single
    class.

    It is the share of pairs (member, other) in which the member has the larger score; ties count one half:
    (Σ ranks of members − m(m + 1)/2) / (m·(n − m)) for m members among n (Mann and Whitney, 1947).

    Args:
        scores: (n, k), a column per class; only their order matters.
        labels: integers (n,) below k.
    """
    members = labels[:, None] == np.arange(scores.shape[1])
    m, n = members.sum(axis=0), len(labels)
    present = (m > 0) & (m < n)
    if not present.any():
        return float("nan")
    sums = np.array([_ranks(scores[:, c])[members[:, c]].sum() for c in np.flatnonzero(present)])
    wins = sums - m[present] * (m[present] + 1) / 2
    return float((wins / (m[present] * (n - m[present]))).mean())


def true_positive_rate(scores: Array, members: Array, false_positive_rate: float) -> float:
    """The largest share of members that a threshold finds while it takes at most ``false_positive_rate`` of
    the others for members; NaN without members or without others.

    Args:
        scores: (n,); above the threshold stands who is taken for a member.
        members: bool (n,).
        false_positive_rate: from 0 to 1.
    """
    inside, outside = scores[members], np.sort(scores[~members])[::-1]
    if not len(inside) or not len(outside):
        return float("nan")
    wrong = int(false_positive_rate * len(outside) + 1e-9)  # a tenth of ten is one, whatever the rounding
    return 1.0 if wrong >= len(outside) else float((inside > outside[wrong]).mean())


def _ranks(values: Array) -> Array:
    """Ranks from 1, ties at their mean. scipy.stats loads slowly (docs/performance.md, small choices)."""
    ordered = np.sort(values)
    below, up_to = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    ranks: Array = (below + up_to + 1) / 2
    return ranks
