"""The SVM (2) in centred and scaled columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from vflens.errors import ConfigError, DataError
from vflens.types import Array

#: Larger values have squares beyond float64.
LARGEST = 1e150
#: θ and ρ beyond it or its inverse overflow when squared and summed.
LEAST_WEIGHT = 1e-50


@dataclass(frozen=True, eq=False)
class Problem:
    """min ½wᵀHw + Σ θξ_i + (ρ/2)ξ_i², ξ_i = max(1 − a_iᵀw, 0), rows a_i of ``A`` (q, p+1).

    A = diag(y)[X 1]T, H = Tᵀdiag(1, …, 1, ρ)T = ``root``ᵀ ``root``, and T w = (α, β). T centres and scales
    the columns, so that one matrix holds large and small ones without loss.
    """

    A: Array
    H: Array
    T: Array
    root: Array
    theta: float
    rho: float

    @classmethod
    def of(cls, x: Array, y: Array, *, theta: float, rho: float) -> Self:
        """See :func:`vflens.table_noise.svm.solve_svm` for the errors."""
        for name, value in (("theta", theta), ("rho", rho)):
            if not LEAST_WEIGHT <= value <= 1 / LEAST_WEIGHT:
                raise ConfigError(
                    f"{name} is {value}: give a number from {LEAST_WEIGHT:g} to {1 / LEAST_WEIGHT:g}"
                )
        if x.ndim != 2 or not x.size or y.shape != x.shape[:1]:
            raise DataError(f"x has shape {x.shape} and y {y.shape}: give (q, p) rows and q labels, q, p ≥ 1")
        if not (abs(x) <= LARGEST).all() or not np.isin(y, (-1, 1)).all():
            raise DataError(
                f"rows must hold numbers up to {LARGEST:g} and labels −1 or +1: clean or rescale the table "
                "first"
            )
        p = x.shape[1]
        mean = x.mean(axis=0)
        A = np.empty((len(x), p + 1), order="F")
        np.subtract(x, mean, out=A[:, :p])
        scale = np.sqrt(np.einsum("ij,ij->j", A[:, :p], A[:, :p]) / len(x))
        constant = scale <= 1e-13 * abs(mean)  # a second bias: scaled, not centred
        A[:, :p][:, constant] = x[:, constant]
        scale[constant], mean[constant] = abs(mean[constant]), 0.0
        scale = np.maximum(scale, 1.0)  # small columns stay as they are: then neither A nor T is large
        A[:, :p] /= scale
        A[:, p] = 1.0
        A *= y[:, None]
        T = np.diag(np.append(1 / scale, 1.0))
        T[p, :p] = -mean / scale
        root = np.sqrt(np.append(np.ones(p), rho))[:, None] * T
        return cls(A, root.T @ root, T, root, theta, rho)

    def original(self, w: Array, omega: Array) -> tuple[Array, float]:
        """(α, β). An α becomes 0 if it is only rounding in Σ ω_i y_i x_i and in a margin."""
        original = self.T @ w
        alpha, scale = original[:-1], 1 / np.diag(self.T)[:-1]
        mean = abs(self.T[-1, :-1]) * scale
        terms = scale * (abs(self.A[:, :-1]).T @ omega) + mean * abs(self.A[:, -1] @ omega)
        if (abs(alpha) <= 1e-14 * terms).all() and (abs(alpha) * scale <= 1e-13).all():
            alpha = np.zeros(len(alpha))
        return alpha, float(original[-1])
