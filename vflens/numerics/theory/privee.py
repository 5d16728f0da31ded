"""PRIVEE's map of scores, and what undoes it (Madabushi et al., arXiv:2512.12840; their code at e4c604a).

A row's scores s, in rising order, become A s with A = I − (2/K)·11ᵀ + diag(D), D drawn once for all rows.
They sum to 1: entry r, the constant 2/K added again, is v_r = (1 + D_r)·s_r. K factors serve all rows, and
each row says Σ_r v_r/(1 + D_r) = 1.
"""

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np

from vflens.array import Array

Variant = Literal["privee", "privee++"]
#: δ and the sensitivity of the authors' experiments on linear models.
DELTA, SENSITIVITY = 1e-5, 0.1
#: The ends of ρ's range, and √ρ times the noise's unit, in the code of PRIVEE++.
_RHO, _UNIT = (0.05, 0.1), 0.48448
_MOST_SIGNS = 6  # negative factors whose orders are tried one by one: 720 orders
_EXACT = 1e-6  # a row is undone where its scores sum to 1 as nearly as this


class FactorBounds(NamedTuple):
    """Where the factors 1 + D_r (K,) of rising scores lie: between ``low`` and ``high``."""

    low: Array
    high: Array

    def drawn(self, rng: np.random.Generator) -> Array:
        """One uniform draw of each (K,)."""
        return rng.uniform(self.low, self.high)

    def near(self, factor: Array, rng: np.random.Generator) -> Array:
        """``factor`` (K,), of which two fifths are moved by a third or so."""
        moved = 0.3 * rng.normal(size=len(factor)) * (rng.random(len(factor)) < 0.4)
        found: Array = np.clip(factor * np.exp(moved), self.low, self.high)
        return found

    def shown(self, v: Array) -> Array:
        """The same numbers (n, K) as shares of at most 1 in a row, by a rising line that all know."""
        lowest, unit = self._line()
        shares: Array = (v - lowest) / unit
        return shares

    def read(self, shares: Array) -> Array:
        """The inverse of :meth:`shown`."""
        lowest, unit = self._line()
        v: Array = lowest + unit * shares
        return v

    def _line(self) -> tuple[float, float]:
        lowest = min(float(self.low.min()), 0.0)
        return lowest, float(self.high.max()) - len(self.low) * lowest


def factors(variant: Variant, k: int, epsilon: float) -> FactorBounds:
    """Those of ``k`` classes.

    PRIVEE: D_r uniform in the r-th of K equal parts of [−3, 3], times √(2 ln(1.25/δ))·Δ/ε. PRIVEE++: in the
    r-th of K equal parts of [0, 1], times 0.48448/ρ_r with ρ_r from .05 to .1; it reads no ε.
    """
    if variant == "privee":
        edges = np.linspace(-3, 3, k + 1)
        scales = np.full(k, math.sqrt(2 * math.log(1.25 / DELTA)) * SENSITIVITY / epsilon)
    else:
        edges, scales = np.linspace(0, 1, k + 1), _UNIT / np.linspace(*_RHO, k + 1)[1:]
    return FactorBounds(1 + scales * edges[:-1], 1 + scales * edges[1:])


def multiplied(s: Array, factor: Array) -> Array:
    """Products (n, K) of scores ``s`` (n, K): the r-th smallest of a row times the r-th ``factor`` (K,)."""
    order, v = np.argsort(s, axis=1, kind="stable"), np.empty_like(s)
    np.put_along_axis(v, order, np.take_along_axis(s, order, axis=1) * factor, axis=1)
    return v


def undone(v: Array, known: FactorBounds, tries: int) -> tuple[Array, Array]:
    """Scores (n, K) from ``v`` (n, K) of all rows, at least one, and which rows (n,) they explain.

    In each of ``tries`` from a guess of the factors: the order of each row that explains it best, then the
    factors by least absolute deviations over rows, and so on. Guesses are drawn anew and near the best found,
    in turn. The first that explains most rows exactly ends it.
    """
    signs = int((v < 0).sum(axis=1).max(initial=0))
    ends = [1 / _of_signs(factor, signs) for factor in known]
    best, least = ends[0], math.inf
    rng = np.random.default_rng(0)  # where a search begins is no secret, and settles nothing
    for number in range(tries):
        guess = known.near(1 / best, rng) if number % 2 else known.drawn(rng)
        share = _settled(v, 1 / _of_signs(guess, signs), signs, ends)
        left = float(np.median(np.abs(_explained(v, share, signs)[1] - 1)))
        best, least = (share, left) if left < least else (best, least)
        if least < _EXACT**2:
            break
    s, sums = _explained(v, best, signs)
    return s, np.abs(sums - 1) < _EXACT


def _explained(v: Array, share: Array, signs: int) -> tuple[Array, Array]:
    """The scores (n, K) that ``share`` (K,), 1/(1 + D_r), makes of ``v``, and their sums (n,)."""
    order, s = _orders(v, share, signs), np.empty_like(v)
    np.put_along_axis(s, order, np.take_along_axis(v, order, axis=1) * share, axis=1)
    return s, s.sum(axis=1)


def _settled(v: Array, share: Array, signs: int, ends: Sequence[Array], rounds: int = 40) -> Array:
    """1/(1 + D_r) (K,) from a guess ``share``; till the last step between the ``ends`` that are known."""
    low, high = np.minimum(*ends), np.maximum(*ends)
    for _ in range(rounds):
        before, share = share, _least_deviations(v, _orders(v, share, signs), rounds=8).clip(low, high)
        if np.allclose(share, before, rtol=1e-9, atol=0):
            break
    return _least_deviations(v, _orders(v, share, signs), rounds=30)


def _least_deviations(v: Array, order: Array, rounds: int) -> Array:
    """argmin_q Σ |v·q − 1| over rows v in their ``order``, by weighted least squares: a few rows in a wrong
    order do not move it.
    """
    ordered = np.take_along_axis(v, order, axis=1)
    weight: Array = np.ones(len(v))
    q: Array = np.zeros(v.shape[1])
    for _ in range(rounds):
        q = np.linalg.lstsq(ordered * weight[:, None], weight, rcond=None)[0]
        weight = 1 / np.sqrt(np.maximum(np.abs(ordered @ q - 1), 1e-12))
    return q


def _orders(v: Array, share: Array, signs: int) -> Array:
    """The classes (n, K) of each row by rising score.

    Positive factors rise, and so do their products. Of the ``signs`` negative ones every order is tried: that
    is taken whose scores rise and sum to 1.
    """
    by_value = np.argsort(v, axis=1, kind="stable")
    tried = np.array(list(permutations(range(signs))) if signs <= _MOST_SIGNS else [range(signs)], int)
    negative = by_value[:, :signs][:, tried]  # (n, orders, signs)
    s = np.take_along_axis(v, negative.reshape(len(v), -1), axis=1).reshape(negative.shape) * share[:signs]
    positive = np.take_along_axis(v, by_value[:, signs:], axis=1) * share[signs:]
    ends = [s, *([np.broadcast_to(positive[:, None, :1], (*s.shape[:2], 1))] if positive.size else [])]
    falls = np.maximum(-np.diff(np.concatenate(ends, axis=2), axis=2), 0).sum(axis=2)
    wrong = np.abs(s.sum(axis=2) + positive.sum(axis=1)[:, None] - 1) + falls
    best = negative[np.arange(len(v)), wrong.argmin(axis=1)]
    found: Array = np.concatenate([best, by_value[:, signs:]], axis=1)
    return found


def _of_signs(factor: Array, signs: int) -> Array:
    """``factor`` with the first ``signs`` of them negative, the others positive, none near 0."""
    return np.concatenate([np.minimum(factor[:signs], -1e-3), np.maximum(factor[signs:], 1e-3)])
