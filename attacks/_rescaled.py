"""What was done to logits before they were released, fitted to rows of which the true ones are known.

All numbers are those of equations: differences of classes, q each row. A row is of a ``kind``: which classes
stand on top, and which have a score at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vflens.numerics.linear_system import RANK_RTOL
from vflens.numerics.shrinkage import shrunk_covariance
from vflens.types import Array


class Rows(NamedTuple):
    """Released logits and the adversary's own ones (n, q), and each row's ``kind``, int below ``kinds``."""

    released: Array
    own: Array
    kind: Array
    kinds: int

    def of(self, places: Array) -> Rows:
        """Those at ``places``."""
        return Rows(self.released[places], self.own[places], self.kind[places], self.kinds)


class Undone(NamedTuple):
    """``scale``·t + e = ``released``·r + ``own``·v + ``constant`` of the row's kind, for released logits r,
    own ones v and the others' t; e has covariance ``noise`` (q, q). ``constant`` (kinds, q) is NaN where
    nothing is known.
    """

    scale: float
    released: float
    own: float
    constant: Array
    noise: Array

    def sides(self, rows: Rows) -> Array:
        """The right-hand sides (n, q) of ``rows``."""
        sides: Array = self.released * rows.released + self.own * rows.own + self.constant[rows.kind]
        return sides


#: What is made of rows whose others' logits t (n, q) are known.
Fit = Callable[[Rows, Array], Undone]


def scaled(rows: Rows, t: Array) -> Undone:
    """One line for all rows, r = a t + b v + c + e."""
    return _of_noise(rows._replace(kind=np.zeros_like(rows.kind)), t, alike=True)


def scaled_by_kind(rows: Rows, t: Array) -> Undone:
    """The same with a constant for each kind."""
    return _of_noise(rows, t, alike=False)


def expected(rows: Rows, t: Array) -> Undone:
    """What t is on average, given what was released: t = a r + b v + c of the kind.

    An estimate that is linear in t needs no more: noise makes a smaller.
    """
    (a, b), constant, _ = _line(t, rows.released, rows.own, rows)
    return Undone(1.0, a, b, constant, np.zeros((t.shape[1],) * 2))


def nothing(rows: Rows, t: Array) -> Undone:
    """The scores tell nothing."""
    q = t.shape[1]
    return Undone(0.0, 0.0, 0.0, np.zeros((rows.kinds, q)), np.eye(q))


FITS: tuple[Fit, ...] = (scaled, scaled_by_kind, expected, nothing)


def drawn_together(rows: Rows, t: Array) -> Undone | None:
    """All logits were multiplied by one factor: r over what it is on average, if t is as expected. None where
    three standard errors allow 1.
    """
    likely = t + rows.own
    total = float((likely**2).sum())
    if not total:
        return None
    a = float((likely * rows.released).sum()) / total
    error = float((((rows.released - a * likely) * likely).sum(axis=1) ** 2).sum()) ** 0.5 / total
    q = t.shape[1]
    shrunk = Undone(a, 1.0, -a, np.zeros((rows.kinds, q)), np.zeros((q, q)))
    return shrunk if abs(a - 1) > 3 * error else None


def _of_noise(rows: Rows, t: Array, *, alike: bool) -> Undone:
    (a, b), constant, left = _line(rows.released, t, rows.own, rows)
    n, q = left.shape
    free = n - len(np.unique(rows.kind)) - 2 / q
    noise = shrunk_covariance(left) * n / max(free, 1.0)
    return Undone(a, 1.0, -b, -(constant[:1].repeat(rows.kinds, axis=0) if alike else constant), noise)


def _line(y: Array, x: Array, v: Array, rows: Rows) -> tuple[tuple[float, float], Array, Array]:
    """Least squares y = a x + b v + c of the kind, all (n, q): (a, b), c (kinds, q) and what is left."""
    means = [_means(of, rows) for of in (y, x, v)]
    centred = [(of - mean[rows.kind]).ravel() for of, mean in zip((y, x, v), means, strict=True)]
    a, b = np.linalg.lstsq(np.column_stack(centred[1:]), centred[0], rcond=RANK_RTOL)[0].tolist()
    constant = means[0] - a * means[1] - b * means[2]
    return (a, b), constant, y - a * x - b * v - constant[rows.kind]


def _means(values: Array, rows: Rows) -> Array:
    """The mean (kinds, q) of each kind, NaN of a kind without a row."""
    total, count = np.zeros((rows.kinds, values.shape[1])), np.bincount(rows.kind, minlength=rows.kinds)
    np.add.at(total, rows.kind, values)
    means: Array = np.where(count[:, None] > 0, total, np.nan) / np.maximum(count, 1)[:, None]
    return means
