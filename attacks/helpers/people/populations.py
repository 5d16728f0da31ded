"""The mean of a column in a population of which the means of other numbers are known.

What a column's mean has to do with those of other numbers is learnt from populations drawn from known rows,
each with another mean of the column (Ateniese et al., 2015; Zhang, Tople and Ohrimenko, 2021, §4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from vflens.types import Array

#: Penalties that are tried, over the sum of squares of the standardised features; infinity: the known mean.
STRENGTHS = (*(10.0 ** (k / 2) for k in range(-12, 5)), np.inf)

#: Returns the features (p, q) of populations of the given rows, positions int (p, m), with repetition.
Featured: TypeAlias = Callable[[Array], Array]


def draws(column: Array, shift: float, populations: int, rng: np.random.Generator) -> Array:
    """Positions int (p, m) of as many rows as ``column`` (m,) has, drawn with weights exp(λ z), p times.

    z is the standardised column and λ normal with deviation ``shift``: about so many of the column's
    deviations a population's mean lies from its own. A population's draws come before those of the next.
    """
    z = (column - column.mean()) / max(float(column.std()), 1e-12)
    each = [(rng.normal(0, shift), rng.random(len(column))) for _ in range(populations)]
    weights = np.exp(np.array([[factor] for factor, _ in each]) * z)
    below = (weights / weights.sum(axis=1, keepdims=True)).cumsum(axis=1)
    below /= below[:, -1:]
    rows = zip(below, each, strict=True)
    return np.stack([own.searchsorted(uniform, side="right") for own, (_, uniform) in rows])


def told_mean(
    column: Array,
    featured: Featured,
    attacked: Array,
    *,
    populations: int,
    shift: float,
    rng: np.random.Generator,
) -> float:
    """The mean of a column in the population with the features ``attacked`` (q,), from known rows.

    ``column`` (m,) are the known rows' values. Ridge regression of the means of ``populations`` on their
    features; its strength errs least on populations of the half of the rows that it was not fitted to.
    """
    if len(column) < 4 or np.ptp(column) == 0:
        return float(column.mean())

    halves = np.array_split(rng.permutation(len(column)), 2)

    def drawn(rows: Array) -> _Drawn:
        chosen = rows[draws(column[rows], shift, populations, rng)]
        means = column[chosen].mean(axis=1)
        return _Drawn(featured(chosen), means, featured(rows[None])[0], float(column[rows].mean()))

    first, second = map(drawn, halves)
    errors = np.zeros(len(STRENGTHS))
    for fitted, judge in ((first, second), (second, first)):
        errors += ((fitted.asked(judge.features) - judge.means) ** 2).sum(axis=1)
    everyone = drawn(np.arange(len(column)))
    return float(everyone.asked(attacked[None])[errors.argmin(), 0])


class _Drawn(NamedTuple):
    """Populations of some rows: their ``features`` (p, q) and ``means`` (p,), and those of the rows."""

    features: Array
    means: Array
    own_features: Array
    own_mean: float

    def asked(self, features: Array) -> Array:
        """The means (s, n) of populations with the ``features`` (n, q), by strength: ridge regression around
        the rows' own.
        """
        f = self.features - self.own_features
        size = np.maximum(f.std(axis=0), 1e-12)
        U, s, Vt = np.linalg.svd(f / size, full_matrices=False)
        scale = max(float((s**2).sum()), 1e-30)
        kept = s / (s**2 + np.array(STRENGTHS)[:, None] * scale)
        along = ((features - self.own_features) / size) @ Vt.T
        found: Array = self.own_mean + (kept * (U.T @ (self.means - self.own_mean))) @ along.T
        return found
