"""What was done to logits before they were released, fitted to known rows.

All is of equations, differences of classes, q each row: released logits r, the adversary's own ones v, the
others' t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vflens.numerics.linear_system import RANK_RTOL
from vflens.numerics.shrinkage import shrunk_covariance
from vflens.types import Array

_LIKELIER = 4.5  # a factor's log-likelihood beyond that of none: three standard deviations
_NEAR = 0.2  # of a factor's logarithm: a belief that is a little wrong makes as much
_SAME = 1e-9  # leads of the highest score that differ by less are one


class Rows(NamedTuple):
    """``released`` r and ``own`` v (n, q), and ``kind`` bool (n, kinds), true once a row."""

    released: Array
    own: Array
    kind: Array

    def of(self, places: Array) -> Rows:
        """Those at ``places``."""
        return Rows(*(part[places] for part in self))


class Relation(NamedTuple):
    """``scale``·t + e = ``sides`` (n, q), NaN where nothing is known; e has covariance ``noise`` (q, q)."""

    scale: float
    sides: Array
    noise: Array


#: What rows taught, whose t (n, q) are known, say of others.
Fit = Callable[[Rows, Array, Rows], Relation]


def of_scores(scores: Array, own: Array, differ: Array) -> Rows:
    """Rows of ``scores`` and ``own`` logits (n, k), of which equations see ``differ`` (q, k).

    Their kind is which classes have a score, which stand on top, and whether they share the least lead: a
    label may have been lifted. A score of 0 counts as half of the least one.
    """
    finite, top = np.isfinite(scores), scores == scores.max(axis=1, keepdims=True)
    filled = np.where(finite, scores, scores[finite].min(initial=0.0) - np.log(2))
    lead = np.diff(np.sort(filled, axis=1)[:, -2:], axis=1).sum(axis=1)
    least = lead < lead.min() + _SAME
    marks = np.column_stack([finite, top, least & (least.sum() > 1)])
    kinds, kind = np.unique(marks, axis=0, return_inverse=True)
    return Rows(filled @ differ.T, own @ differ.T, kind.reshape(-1, 1) == np.arange(len(kinds)))


def by_kind(taught: Rows, t: Array, asked: Rows) -> Relation:
    """Least squares r = a t + b v + c + e with a constant c for each kind."""
    count, kind = taught.kind.sum(axis=0)[:, None], taught.kind.argmax(axis=1)
    arrays = (taught.released, t, taught.own)
    means = [np.where(count, taught.kind.T @ of / np.maximum(count, 1), np.nan) for of in arrays]
    r, *others = [(of - mean[kind]).ravel() for of, mean in zip(arrays, means, strict=True)]
    a, b = np.linalg.lstsq(np.column_stack(others), r, rcond=RANK_RTOL)[0].tolist()
    c = means[0] - a * means[1] - b * means[2]
    left = taught.released - a * t - b * taught.own - c[kind]
    n, q = left.shape
    free = n - (count > 0).sum() - 2 / q
    noise = shrunk_covariance(left) * n / max(free, 1.0)
    return Relation(a, asked.released - b * asked.own - c[asked.kind.argmax(axis=1)], noise)


def alike(taught: Rows, t: Array, asked: Rows) -> Relation:
    """The same with one constant."""
    taught, asked = (rows._replace(kind=np.ones((len(rows.kind), 1), bool)) for rows in (taught, asked))
    return by_kind(taught, t, asked)


def expected(taught: Rows, t: Array, asked: Rows) -> Relation:
    """What t is on average, given what was released: its line is flatter under noise, and the estimate, which
    is linear in t, needs no more.
    """
    blank = asked._replace(released=np.zeros_like(asked.own))
    line = by_kind(taught._replace(released=t), taught.released, blank)
    return Relation(1.0, line.scale * asked.released - line.sides, np.zeros_like(line.noise))


FITS: tuple[Fit, ...] = (alike, by_kind, expected)


def one_factor(rows: Rows, likely: Array, spread: Array, whole: Array) -> Relation | None:
    """All logits r were multiplied by one factor a: the likeliest, if without it r would be normal around
    ``likely`` (n, q) with covariance ``spread`` (q, q); only rows ``whole`` (m,) have all scores. None where
    no factor is likely enough, or it is near 1.

    With s = 1/a the logarithm of the likelihood is −s² R/2 + s C + m ln s, largest at the root of a square.
    """
    P, r = np.linalg.pinv(spread, RANK_RTOL, hermitian=True), rows.released[whole]
    R, C = (float(((r @ P) * of).sum()) for of in (r, likely[whole]))
    m = len(r) * int(np.linalg.matrix_rank(P))
    if R <= 0 or not m:
        return None
    s = (C + np.sqrt(C**2 + 4 * R * m)) / (2 * R)
    gain = C * (s - 1) - R * (s**2 - 1) / 2 + m * np.log(s)
    if gain < _LIKELIER or abs(np.log(s)) < _NEAR:
        return None
    sides = np.full_like(likely, np.nan)
    sides[whole] = s * r - rows.own[whole]
    return Relation(1.0, sides, np.zeros_like(spread))
