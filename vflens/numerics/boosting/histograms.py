"""Which rows stand in which bin of a column, from sums of known gradients by bin.

In SecureBoost (Cheng et al., 2021, Algorithm 1) a passive party answers, for every node with rows I and each
bin b of a column, G_b = Σ_I g_i z_ib and H_b = Σ_I h_i z_ib. Here z_ib is 1 if row i stands in bin b, else 0.
The active party decrypts both, and computed every g_i and h_i itself. So an answer is two linear equations in
unknowns of 0 and 1. A round brings new gradients, hence new equations.

1. Exact: hessians are not negative, so H_b bounds how many rows a bin can hold. Where few subsets of the open
   rows are left, all are tried. What those that give both sums agree upon holds for certain, and leaves other
   nodes fewer open rows.
2. Rows that stay open: the solution of the equations nearest to equal beliefs in the bins that a row may
   have, which is half* (RVG, Section IV) with another centre.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from vflens.array import Array

_MOST = 4096  # subsets that are tried for one sum: a millisecond
_NEAR = 1e-9  # of sums that are equal up to rounding
_ROUNDING = 2 * float(np.finfo(np.float64).eps)  # per addend, relative: of three sums in any order
_OPEN = -1


@dataclass(frozen=True, eq=False)
class Histograms:
    """Sums by the B bins of one column, float64 ``sums`` (M, B, 2): ``spaces`` bool (M, n), whether a node
    holds a row; ``weights`` (M, n, 2), gradient and hessian of each row in the round of the node.
    """

    spaces: Array
    weights: Array
    sums: Array


def bins_of_rows(seen: Histograms) -> tuple[Array, Array]:
    """Beliefs (n, B) in the bin of each row, and whether it is proven, bool (n,): the belief is then 1.

    Proven means that no other bin fits the sums to 1e-9 and what float64 may round. Sums of less precision
    prove nothing.
    """
    search = _Search(seen)
    search.run()
    return _nearest(seen, search.holds), (search.holds == 1).any(axis=1)


class _Search:
    """``holds`` int8 (n, B): whether a bin holds a row, as far as sums prove it; −1 if open."""

    def __init__(self, seen: Histograms) -> None:
        self._seen = seen
        self.holds = np.full((seen.spaces.shape[1], seen.sums.shape[1]), _OPEN, np.int8)
        self._waiting = np.ones(seen.sums.shape[:2], bool)
        sizes = np.where(seen.spaces[..., None], np.abs(seen.weights), 0.0).sum(axis=1)
        self._near = _NEAR + _ROUNDING * seen.spaces.shape[1] * sizes

    def run(self) -> None:
        """Look at every sum again until none of its rows has changed."""
        while self._waiting.any():
            for node, place in np.argwhere(self._waiting).tolist():
                self._waiting[node, place] = False
                self._look(node, place)

    def _look(self, node: int, place: int) -> None:
        rows, weights, near = self._seen.spaces[node], self._seen.weights[node], self._near[node]
        left = np.flatnonzero(rows & (self.holds[:, place] == _OPEN))
        due = self._seen.sums[node, place] - weights[rows & (self.holds[:, place] == 1)].sum(axis=0)
        most = int((np.sort(weights[left, 1]).cumsum() <= due[1] + near[1]).sum())
        subsets = _subsets(len(left), most)
        if subsets is None:
            return
        fitting = subsets[(np.abs(subsets @ weights[left] - due) <= near).all(axis=1)]
        if len(fitting):
            self._settle(left[fitting.all(axis=0)], place, inside=True)
            self._settle(left[~fitting.any(axis=0)], place, inside=False)

    def _settle(self, rows: Array, place: int, *, inside: bool) -> None:
        """The bin ``place`` holds these rows, or none of them; a row stands in exactly one bin."""
        rows = rows[self.holds[rows, place] == _OPEN]
        self.holds[rows, place] = inside
        self._waiting[self._seen.spaces[:, rows].any(axis=1), place] = True
        for row in rows:
            others = np.flatnonzero(self.holds[row] != 0)
            if inside:
                for other in others[others != place]:
                    self._settle(np.array([row]), other, inside=False)
            elif len(others) == 1:
                self._settle(np.array([row]), others[0], inside=True)


@lru_cache(maxsize=256)
def _subsets(rows: int, most: int) -> Array | None:
    """All subsets of at most ``most`` of so many rows, bool (s, rows); None if there are too many."""
    if sum(comb(rows, size) for size in range(most + 1)) > _MOST:
        return None
    chosen = [c for size in range(most + 1) for c in combinations(range(rows), size)]
    found = np.zeros((len(chosen), rows), bool)
    for place, members in enumerate(chosen):
        found[place, list(members)] = True
    return found


def _nearest(seen: Histograms, holds: Array) -> Array:
    """Beliefs (n, B): what is proven; of open rows the least-squares solution nearest to equal shares."""
    A = np.concatenate(np.moveaxis(np.where(seen.spaces[..., None], seen.weights, 0.0), 2, 0))
    b = np.concatenate(np.moveaxis(seen.sums, 2, 0))
    beliefs: Array = (holds == 1).astype(np.float64)
    for place in range(holds.shape[1]):
        left = np.flatnonzero(holds[:, place] == _OPEN)
        if len(left):
            equal = 1 / (holds[left] != 0).sum(axis=1)
            due = b[:, place] - A @ beliefs[:, place] - A[:, left] @ equal
            beliefs[left, place] = equal + np.linalg.lstsq(A[:, left], due, rcond=1e-9)[0]
    return beliefs
