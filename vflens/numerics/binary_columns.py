"""Columns of two values in the span of others (after Ye et al., 2022, arXiv 2210.06771).

An affine map hides which columns a table has. A column of 0 and 1 gives itself away: hardly any other
mixture of columns takes two values only. The search is ours: two-valued vectors s are moved towards the span,
from directions that single out a row each, and from random ones. With y the projection of s on the span, the
next s splits y where it correlates most with y; the share R² of s inside the span never falls.
"""

import numpy as np

from vflens.array import Array

_MOVES = 100  # of one start, at most
_NEW = (
    0.1  # share of a column outside the span of those taken before: below it the column is a mixture of them
)


def binary_columns(x: Array, starts: int, tolerance: float, rng: np.random.Generator) -> Array:
    """Columns of 0 and 1 (n, b), b ≤ d, in the span of the columns of ``x`` (n, d) and of 1, rarest first.

    ``starts`` rows are drawn, and as many directions. A column counts as found if the share of its variance
    outside the span is at most ``tolerance``. Of a column and 1 − column the one with fewer ones stands here.
    Unions of columns that exclude one another, such as those of a category, are left out: the rarer parts
    come first.
    """
    q, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    q = q[:, s > 1e-9 * s.max(initial=0.0)]
    drawn = q[rng.permutation(len(q))[:starts]]
    directions = np.concatenate([drawn, rng.normal(size=(starts, q.shape[1]))])
    found = {split.tobytes(): split for split in (_climbed(q, direction) for direction in directions)}
    rarest_first = sorted(found.values(), key=lambda split: (split.sum(), split.tobytes()))
    taken, basis = list[Array](), np.zeros((len(q), 0))
    for split in rarest_first:
        centred = split - split.mean()
        size = centred @ centred
        left = centred - basis @ (basis.T @ centred)
        if size == 0 or 1 - ((q.T @ centred) ** 2).sum() / size > tolerance or left @ left < _NEW * size:
            continue
        taken.append(split.astype(np.float64))
        basis = np.column_stack([basis, left / np.linalg.norm(left)])
    return np.column_stack(taken) if taken else np.zeros((len(q), 0))


def _climbed(q: Array, direction: Array) -> Array:
    """The two-valued vector, bool (n,), where moves from ``direction`` (d,) end; at most half is True."""
    split = np.zeros(len(q), bool)
    for _ in range(_MOVES):
        moved = _split(q @ direction)
        if np.array_equal(moved, split):
            break
        split = moved
        direction = q.T @ (split - split.mean())
    return split if 2 * split.sum() <= len(split) else ~split


def _split(y: Array) -> Array:
    """``y`` (n,) above the threshold, bool (n,), at which the two sides correlate most with ``y``."""
    order = np.argsort(-y, kind="stable")
    ones, above = np.arange(1, len(y)), np.cumsum((y - y.mean())[order])[:-1]
    most = int(np.argmax(above**2 / (ones * (len(y) - ones))))
    split = np.zeros(len(y), bool)
    split[order[: most + 1]] = True
    return split


def matched(truth: Array, estimate: Array) -> float:
    """The largest share of rows where a two-valued column of ``estimate`` (n, m), or what it leaves, splits
    them as ``truth`` (n,) of two values does; NaN if no column has two values.
    """
    wanted, shares = truth == truth.max(initial=0.0), [np.nan]
    for column in estimate.T:
        if len(np.unique(column)) == 2:
            agreed = float(((column == column.max()) == wanted).mean())
            shares.append(max(agreed, 1 - agreed))
    return float(np.nanmax(shares)) if len(shares) > 1 else float("nan")
