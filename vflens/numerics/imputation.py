"""Imputation: what an adversary's own columns say of others, learnt from the rows of which it knows both.

Ridge regression with a free intercept. Its strength, and whether it is used at all or means are, is what
errs least on the known rows when each is left out in turn; no truth beyond these rows is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.array import Array

#: Penalties that are tried, over the mean squared length of the own columns; infinity is the means.
STRENGTHS = (*(10.0 ** (k / 2) for k in range(-6, 5)), np.inf)


@dataclass(frozen=True, eq=False)
class FittedImputation:
    """x̂ = mean + (a − own_mean) B, with B (p, d) = 0 where the means err least.

    ``left_out`` (m, d): the errors x − x̂ of the known rows, each by a fit to the others.
    """

    own_mean: Array
    mean: Array
    B: Array
    left_out: Array

    def __call__(self, own: Array) -> Array:
        """The columns (N, d) of rows with the ``own`` columns (N, p), unclipped."""
        imputed: Array = self.mean + (own - self.own_mean) @ self.B
        return imputed


def imputation(own: Array, x: Array) -> FittedImputation:
    """Fit the columns ``x`` (m, d) of m ≥ 1 known rows to the ``own`` ones (m, p), float64.

    A row's error when it is left out is e / (1 − h), e its error in the fit to all and h its place on the
    diagonal of the hat matrix: D. M. Allen, The relationship between variable selection and data
    augmentation, Technometrics 16 (1974).
    """
    m = len(x)
    own_mean, mean = own.mean(axis=0), x.mean(axis=0)
    U, s, Vt = np.linalg.svd(own - own_mean, full_matrices=False)
    centred = x - mean
    scale = (s**2).sum() / max(own.shape[1], 1)
    if m < 2 or scale == 0:
        return FittedImputation(own_mean, mean, np.zeros((own.shape[1], x.shape[1])), centred)

    def left_out(strength: float) -> Array:
        kept = s**2 / (s**2 + strength * scale)
        h = 1 / m + U**2 @ kept
        errors: Array = (centred - U * kept @ (U.T @ centred)) / (1 - h)[:, None]
        return errors

    found = [left_out(strength) for strength in STRENGTHS]
    best = int(np.argmin([(errors**2).sum() for errors in found]))
    B = Vt.T * (s / (s**2 + STRENGTHS[best] * scale)) @ (U.T @ centred)
    return FittedImputation(own_mean, mean, B, found[best])
