"""Instance spaces as points: rows that stand in the same nodes of boosted trees mostly have one class.

The instance space of a node is the set of rows that reach it. In a vertical federation a party needs it to
sum gradients, so it learns it without having a label. Takahashi, Liu and Liu (2023, arXiv 2307.10318,
ID2Graph) join two rows by an edge for each tree in which they end together, and look for communities.
"""

import numpy as np

from vflens.array import Array

_RIDGE = 0.1  # of points whose mean squared length is 1


def shared_spaces(spaces: Array, tree: Array) -> Array:
    """Points (n, q) of n rows: the inner product of two is the weight of ID2Graph's edge between them.

    That is the number of trees in which both rows end together: one space is the smallest known one of
    either. Every tree counts alike; ID2Graph discounts later ones.

    Args:
        spaces: bool (M, n), whether a node holds a row.
        tree: int (M,), the tree of each node.
    """
    columns = []
    for number in np.unique(tree):
        of_tree = spaces[tree == number]
        of_tree = of_tree[of_tree.sum(axis=1).argsort(kind="stable")]
        smallest = of_tree & (of_tree.cumsum(axis=0) == 1)
        columns.append(smallest[smallest.any(axis=1)])
    return np.concatenate(columns).T.astype(np.float64)


def learned(points: Array, known: Array, labels: Array, classes: int) -> Array:
    """Beliefs (n, classes) from rows ``known`` int (m,) with ``labels`` int (m,): ridge regression on points.

    A boosted model is itself a sum of one number for each leaf.
    """
    shares = np.bincount(labels, minlength=classes) / len(labels)
    products = points @ points[known].T / (points**2).sum(axis=1).mean()
    excess = np.eye(classes)[labels] - shares
    beliefs: Array = shares + products @ np.linalg.solve(
        products[known] + _RIDGE * np.eye(len(known)), excess
    )
    return beliefs
