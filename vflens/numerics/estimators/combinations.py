"""All combinations of finitely many values per unknown that satisfy A x = b: meet in the middle.

The unknowns are divided into two halves. Every combination of a half has a sum of A-columns; two sums that
add up to b solve a row b. The search sorts one half's sums and looks for b minus each of the other's, along
one generic direction, then checks all equations. With M combinations per half it decides M² combinations in M
log M steps per row. It solves the integer programme of RVG §IX exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from vflens.array import Array

_CELLS = 1 << 20  # entries of the table rows × combinations in one block
_MOST = 4096  # pairs of sums along the search direction: the search skips a row with more


@dataclass(frozen=True, eq=False)
class Combinations:
    """Solutions of all rows.

    ``values`` (M, d) are solutions of ``rows`` int (M,), in ascending order. ``complete`` bool (N,): all
    solutions of that row are found; False if too many combinations came near and the search skipped the row.
    """

    rows: Array
    values: Array
    complete: Array


def halves(letters: Sequence[Array], budget: int) -> tuple[list[int], list[int]] | None:
    """The unknowns in two halves of at most ``budget`` combinations each; None if that is impossible."""
    sides: tuple[list[int], list[int]] = ([], [])
    sizes = [1, 1]
    for j in sorted(range(len(letters)), key=lambda j: -len(letters[j])):
        side = int(sizes[1] < sizes[0])
        sides[side].append(j)
        sizes[side] *= len(letters[j])
    return sides if max(sizes) <= budget else None


def solutions(
    A: Array, b: Array, letters: Sequence[Array], sides: tuple[list[int], list[int]], tolerance: Array
) -> Combinations:
    """Every x with x_j among ``letters[j]`` and ‖A x − b‖ ≤ ``tolerance``, for each row of b.

    Args:
        A: (m, d); with m = 0 every combination is a solution.
        b: (N, m).
        letters: the d alphabets, each (n_j,) without repetition.
        sides: from :func:`halves`.
        tolerance: (N,).
    """
    left, right = (_combinations([letters[j] for j in side]) for side in sides)
    L, R = (c @ A[:, side].T for c, side in zip((left, right), sides, strict=True))
    direction = np.sqrt(np.arange(2.0, len(A) + 2))  # generic: different sums differ along it
    direction /= np.linalg.norm(direction) or 1.0
    order = np.argsort(R @ direction, kind="stable")
    R, right = R[order], right[order]
    keys, first = R @ direction, L @ direction
    found: list[tuple[Array, Array]] = []
    complete = np.ones(len(b), bool)
    chunk = max(1, _CELLS // len(L))
    for start in range(0, len(b), chunk):
        rows = np.arange(start, min(start + chunk, len(b)))
        wanted = (b[rows] @ direction)[:, None] - first
        slack = tolerance[rows][:, None] + 1e-12 * np.abs(wanted)
        low = np.searchsorted(keys, wanted - slack)
        count = np.searchsorted(keys, wanted + slack, side="right") - low
        complete[rows] = count.sum(axis=1) <= _MOST
        r, p, q = _pairs(np.where(complete[rows][:, None], count, 0), low)
        near = np.linalg.norm(L[p] + R[q] - b[rows[r]], axis=1) <= tolerance[rows[r]]
        values = np.empty((int(near.sum()), A.shape[1]))
        values[:, sides[0]], values[:, sides[1]] = left[p[near]], right[q[near]]
        found.append((rows[r[near]], values))
    nothing = (np.zeros(0, int), np.zeros((0, A.shape[1])))
    rows_found, values_found = zip(*[nothing, *found], strict=True)
    return Combinations(np.concatenate(rows_found), np.concatenate(values_found), complete)


def _combinations(letters: Sequence[Array]) -> Array:
    """All combinations (M, h) of h alphabets; (1, 0) for none."""
    grid = np.meshgrid(*letters, indexing="ij")
    rows: Array = np.stack(grid, -1).reshape(prod(map(len, letters)), -1) if grid else np.zeros((1, 0))
    return rows


def _pairs(count: Array, low: Array) -> tuple[Array, Array, Array]:
    """Row, left and right index of each pair, ``count`` (n, M) consecutive right ones from ``low``."""
    r, p = np.nonzero(count)
    times = count[r, p]
    offset = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(r, times), np.repeat(p, times), np.repeat(low[r, p], times) + offset
