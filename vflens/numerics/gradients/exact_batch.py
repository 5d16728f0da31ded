"""All rows of a batch, exactly, from its gradient in a first layer behind which a ReLU stands.

z = W x + c has, summed over the rows of a batch, ∇W = L X and ∇c = L 1. Column i of L (m, b) is the error
signal of row i: exactly 0 at the units in which row i is silent. SPEAR (Dimitrov et al., NeurIPS 2024): the
left singular vectors U of [∇W ∇c] span L's columns, L = U Q with Q (b, b), and a column of L is a sparse
vector of that span. Here it is found by reweighted least squares instead of by drawn sub-matrices, whose
number grows as 2^b (ours; SPEAR++, 2025, learns it by descent too). Where one known layer of two classes
stands behind the ReLU, L_ui is 0 or s_i·v_u with known v: a vector of two values is found instead, which
maximises ‖·‖₁ on the sphere.

All b columns give the rows: [X 1] = Q⁻¹ S Vᵀ up to one factor a row, which the last column fixes. The forward
pass proves them: the units that a row wakes must be those of its column, and no other direction may fit them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from vflens.array import Array

EXACT = 1e-3  # of a column's range: the rounding of float32
_ROUNDS, _STARTS, _SELECTIONS = 40, 64, 4
_EQUAL, _POLISHED, _MISFIT = 3, 3, 5.0  # equal rows; passes; times what the rank leaves of the gradient
_DESCENT = 0.3 * np.geomspace(1, 1e-5, 30)  # what counts as 0 while a sparse vector is looked for
_FAINT = 0.02  # of the largest: units behind which rounding is large
_LEAST, _APART = 1e-9, 1e-4  # rounding of float64; singular values of directions that are told apart
_SURE = 5  # standard deviations of rounding
_SAME = 1e-7  # 1 − |cosine| of one direction found twice, at least


@dataclass(frozen=True, eq=False)
class ExactBatch:
    """The rows ``x`` (n, d) of a batch, in no order, equal ones as often as they are there; ``misfit``, how
    far their gradient is from the one given, in its own size: NaN where the layers behind are not known.
    ``bound`` (n,) is on the error of each row by rounding, where x lies in [0, 1]. Several rows that wake the
    same units everywhere give the gradient of their mean so many times: nothing but [0, 1] bounds them.
    """

    x: Array
    misfit: float
    bound: Array


def exact_batch(
    gradient: tuple[Array, Array],
    layer: tuple[Array, Array],
    rows: int,
    rng: np.random.Generator,
    *,
    slopes: Callable[[Array], Array] | None = None,
    behind: Array | None = None,
) -> ExactBatch | None:
    """The batch of ``rows`` rows whose ``gradient`` ∇W (m, d), ∇c (m,) it is; None: nothing is proven.

    Args:
        gradient: of the batch's mean loss, or the mean of such gradients of several steps.
        layer: W (m, d) and c (m,), float64.
        rows: n. Rows that are equal are found where ``slopes`` are known.
        rng: draws the starts.
        slopes: gives of rows (b, d) the gradient (b, k, m) in z of the loss of each, as each of k classes.
        behind: v (m,) where every error signal is a multiple of it at the units that are awake.
    """
    seen = np.column_stack(gradient)
    left, sizes, right = np.linalg.svd(seen, full_matrices=False)
    b, noise = _rank(sizes, rows)
    if not 0 < b < len(seen) or (slopes is None and b < rows):  # a mean of equal rows wakes the same units
        return None
    whole = np.column_stack(layer)
    search = _Search(left[:, :b], sizes[:b, None] * right[:b], noise, whole, behind)
    rounds = int(_ROUNDS * min(1, (20 / b) ** 2)) + 1 if len(search.units) > b else 0
    for number in range(rounds * _SELECTIONS):
        drawn = number % _SELECTIONS > 0
        if not drawn:
            search.look(rng)
        x = search.settled(rng if drawn else None)
        if x is not None and slopes is None:
            return ExactBatch(x, float("nan"), _bound(x, seen, whole, None))
        found = None if x is None or slopes is None else _explained(x, seen, rows, slopes)
        if found is not None and found.misfit <= _MISFIT * np.linalg.norm(sizes[b:]) / sizes[0] + _LEAST:
            return found
    return None


def _explained(x: Array, seen: Array, rows: int, slopes: Callable[[Array], Array]) -> ExactBatch | None:
    """Rows near ``x`` (b, d) with labels of a batch of ``rows``, whose gradient is nearest to ``seen``."""
    most = min(rows - len(x) + 1, _EQUAL)
    for _ in range(_POLISHED):
        each = slopes(x)
        labels = [
            c for n in range(1, most + 1) for c in combinations_with_replacement(range(each.shape[1]), n)
        ]
        offered = np.stack([each[:, list(c)].sum(axis=1) for c in labels], axis=1)
        signals = rows * np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]).T, seen.T, rcond=None)[0]
        best = ((offered - signals[:, None]) ** 2).sum(axis=2).argmin(axis=1)
        chosen = offered[np.arange(len(x)), best].T / rows
        found = np.linalg.lstsq(chosen, seen, rcond=None)[0]
        x = found[:, :-1] / found[:, -1:]
    counts = np.array([len(labels[c]) for c in best])
    if counts.sum() != rows:
        return None
    misfit = np.linalg.norm(chosen @ np.column_stack([x, np.ones(len(x))]) - seen) / np.linalg.norm(seen)
    one = _bound(x, seen, seen, chosen)
    bound = np.where(counts > 1, np.maximum(np.abs(x), np.abs(1 - x)).max(axis=1), one)
    return ExactBatch(np.repeat(x, counts, axis=0), float(misfit), np.repeat(bound, counts))


def _bound(x: Array, seen: Array, layer: Array, signals: Array | None) -> Array:
    """Five standard deviations (b,) of the error of the rows ``x`` (b, d), whose error signals (m, b) may be
    known: what they leave of the gradient is its rounding. Unknown ones bear it too: each is told from the
    others where its row is silent.
    """
    whole = np.column_stack([x, np.ones(len(x))])
    back = np.linalg.pinv(whole)
    found = seen @ back if signals is None else signals
    left = np.linalg.norm(found @ whole - seen, axis=0).max() / np.sqrt(
        max(1, seen.any(axis=1).sum() - len(x))
    )
    parts = np.linalg.norm(np.linalg.pinv(found), axis=1)
    weight = 1 / np.maximum(np.linalg.norm(np.linalg.qr(found)[0], axis=1), _LEAST)
    for i, silent in enumerate(whole @ layer.T <= 0 if signals is None else []):
        others = np.linalg.pinv(
            (silent * weight * seen.any(axis=1))[:, None] * found * (np.arange(len(x)) != i)
        )
        parts += np.linalg.norm(others * weight, axis=1) * np.linalg.norm(back[:, i])
    bound: Array = _SURE * left * parts
    return bound


def _rank(sizes: Array, rows: int) -> tuple[int, float]:
    """How many singular values ``sizes`` stand out, at most ``rows``, and the rounding of a direction."""
    floored = np.append(np.maximum(sizes, 1e-15 * sizes[0]), 1e-15 * sizes[0])
    most = min(rows, len(sizes))
    if not sizes[0] > 0:
        return 0, 0.0
    b = 1 + int((floored[:most] / floored[1 : most + 1]).argmax())
    return b, max(_LEAST, float(floored[b] / floored[b - 1]))


class _Search:
    """Directions q (b,) so that U q is the error signal of a row, found so far."""

    def __init__(self, span: Array, rest: Array, noise: float, layer: Array, behind: Array | None) -> None:
        self.rest = rest
        size = np.linalg.norm(span, axis=1)
        live = size > 10 * noise  # a unit that no row wakes
        self.live, self.units = span[live], span[live] / size[live, None]
        self.within, self.same = noise / size[live], max(_SAME, (100 * noise) ** 2)
        self.layer = layer[live]
        self.behind = None if behind is None else behind[live]
        self.hits = np.zeros((0, span.shape[1]))
        self.proven = self.hits

    def look(self, rng: np.random.Generator) -> None:
        """Add directions from new starts, two thirds of them beside what is proven."""
        b = self.units.shape[1]
        if self.behind is not None:
            patterns = _two_valued(self.live, self.behind, rng)
        else:
            start = rng.standard_normal((_STARTS, b))
            beside = np.linalg.qr(self.proven.T)[0]
            start[_STARTS // 3 :] -= start[_STARTS // 3 :] @ beside @ beside.T
            ends = _sparse(self.units, start)
            near = np.abs(ends @ self.units.T) / self.within
            patterns = ~np.concatenate([near < 10, near < 100])
        for awake in np.unique(patterns, axis=0)[: 2 * _STARTS]:
            self._add(self._direction(awake))

    def settled(self, rng: np.random.Generator | None) -> Array | None:
        """The rows (b, d) if the directions prove one another: the sparsest first, or drawn."""
        for _ in range(len(self.rest)):
            chosen, before = self._chosen(rng), len(self.proven)
            kept = [self._direction(awake) for awake in self._rows(chosen) @ self.layer.T > 0]
            whole = [q is not None and abs(q @ p) > 1 - self.same for q, p in zip(kept, chosen, strict=True)]
            if all(whole) and np.linalg.matrix_rank(np.array(kept)) == len(kept):
                return self._rows(np.array(kept))[:, :-1]
            self.proven = np.zeros((0, len(self.rest)))
            for q in kept:
                if q is not None and self._is_new(q, self.proven):
                    self.proven = np.vstack([self.proven, q])
                self._add(q)
            if len(self.proven) <= before:
                break
        return None

    def _rows(self, directions: Array) -> Array:
        factors = np.linalg.solve(directions.T, self.rest)
        return np.asarray(factors / np.where(factors[:, -1:] == 0, 1, factors[:, -1:]))

    def _add(self, direction: Array | None) -> None:
        if direction is not None and self._is_new(direction, self.hits):
            self.hits = np.vstack([self.hits, direction])

    def _is_new(self, direction: Array, among: Array) -> bool:
        return bool((np.abs(among @ direction) < 1 - self.same).all())

    def _direction(self, awake: Array) -> Array | None:
        """The one direction of the row that wakes these units, bool (m,); None where there is none, or
        several.
        """
        if self.behind is None:
            q = _orthogonal(self.units[~awake])
        else:
            q, _, rank, _ = np.linalg.lstsq(self.live, self.behind * awake, rcond=None)
            q = q / np.linalg.norm(q) if rank == len(q) and q.any() else None
        return q if q is not None and self._fits(q, awake) else None

    def _fits(self, q: Array, awake: Array) -> bool:
        """Whether the error signal of ``q`` is 0 where no unit is ``awake``."""
        return bool((np.abs(self.units @ q) < 10 * self.within)[~awake].all())

    def _chosen(self, rng: np.random.Generator | None) -> Array:
        """Independent directions (b, b): the proven, hits, and any that complete them."""
        zeros = (np.abs(self.hits @ self.units.T) < 10 * self.within).sum(axis=1)
        order = np.argsort(
            -zeros if rng is None else rng.random(len(zeros)) - zeros / len(self.units), kind="stable"
        )
        basis, chosen = np.zeros((0, len(self.rest))), list[Array]()
        for q in [*self.proven, *self.hits[order], *np.eye(len(self.rest))]:
            beside = q - basis.T @ (basis @ q)
            if np.linalg.norm(beside) > 1e-3 and len(chosen) < len(self.rest):
                chosen.append(q)
                basis = np.vstack([basis, beside / np.linalg.norm(beside)])
        return np.array(chosen)


def _orthogonal(units: Array) -> Array | None:
    """The one direction to which ``units`` (s, b) are nearly orthogonal, more of them than it takes."""
    b = units.shape[1]
    if b == 1:
        return np.ones(1)
    if len(units) < b:
        return None
    _, sizes, vectors = np.linalg.svd(units)
    return None if sizes[b - 2] < _APART else vectors[-1]


def _sparse(units: Array, q: Array) -> Array:
    """Ends (t, b) of reweighted least squares from ``q``: many ``units`` are orthogonal to them."""
    b = units.shape[1]
    products = (units[:, :, None] * units[:, None, :]).reshape(len(units), -1)
    for width in _DESCENT:
        weights = 1 / ((q @ units.T) ** 2 + width**2)
        squares = (weights @ products).reshape(-1, b, b)
        squares += 1e-12 * np.trace(squares, axis1=1, axis2=2)[:, None, None] * np.eye(b)
        q = np.linalg.solve(squares, q[..., None])[..., 0]
        q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q


def _two_valued(span: Array, behind: Array, rng: np.random.Generator) -> Array:
    """Patterns bool (p, m) of vectors in ``span`` (m, b) that are a multiple of ``behind``, or 0."""
    sure = np.abs(behind) > _FAINT * np.abs(behind).max()
    known = span[sure] / behind[sure, None]
    basis = np.linalg.qr(np.column_stack([known, np.ones(len(known))]))[0]
    q = rng.standard_normal((16 * _STARTS, basis.shape[1]))
    for _ in range(60):
        q = np.sign(q @ basis.T) @ basis
        q /= np.linalg.norm(q, axis=1, keepdims=True)
    values = q @ basis.T
    sizes = np.abs(values)
    flat = sizes.max(axis=1) - sizes.min(axis=1) < 1e-2 * sizes.max(axis=1)
    found = np.unique(values[flat] > 0, axis=0)
    patterns = np.concatenate([found, ~found]).astype(float)
    directions = np.linalg.lstsq(known, patterns.T, rcond=None)[0]
    awake: Array = (span @ directions).T / behind > 0.5
    return awake
