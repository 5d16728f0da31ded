"""The SVM (2) in centred and scaled columns, and the residuals of a point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf

from vflens.errors import ConfigError, DataError
from vflens.types import Array

#: Larger values have squares beyond float64.
LARGEST = 1e150
#: θ and ρ beyond it or its inverse overflow when squared and summed.
LEAST_WEIGHT = 1e-50
#: Rows of a block in AᵀDA: a block and its copy stay in the processor's cache.
BLOCK = 4096


@dataclass(frozen=True)
class Kkt:
    """Relative residuals of the optimality conditions; 0 is exact.

    ``stationarity``: the worst coordinate of Hw − Aᵀω over the size of its terms. ``complementarity``: the
    largest distance of a row's (1 − a_iᵀw, ω_i/θ) from the three cases outside, on and inside the margin.
    """

    stationarity: float
    complementarity: float

    @property
    def exact(self) -> bool:
        """Whether rounding explains both; columns of 1e12 can exceed it."""
        return self.stationarity <= 1e-5 and self.complementarity <= 1e-8

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.stationarity, self.complementarity)

    @property
    def to_rounding(self) -> bool:
        """Whether only rounding is left."""
        return self.worst <= 1e-12


@dataclass(frozen=True, eq=False)
class Problem:
    """min ½wᵀHw − ``linear``ᵀw + Σ θξ_i + (ρ/2)ξ_i², ξ_i = max(1 − a_iᵀw, 0), rows a_i of ``A`` (q, p+1).

    A = diag(y)[X 1]T, H = Tᵀdiag(1, …, 1, ρ)T = ``root``ᵀ ``root``, and T w = (α, β).
    T centres and scales the columns, so that one matrix holds large and small ones without loss. The problem
    stays (2), whose ``linear`` is 0. Columns of A are contiguous.
    """

    A: Array
    H: Array
    T: Array
    root: Array
    theta: float
    rho: float
    linear: Array

    @classmethod
    def of(cls, x: Array, y: Array, *, theta: float, rho: float) -> Problem:
        """See :func:`vflens.table_noise.svm.solve_svm` for the errors."""
        for name, value in (("theta", theta), ("rho", rho)):
            if not LEAST_WEIGHT <= value <= 1 / LEAST_WEIGHT:
                raise ConfigError(
                    f"{name} is {value}: give a number from {LEAST_WEIGHT:g} to {1 / LEAST_WEIGHT:g}"
                )
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
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
        scale[constant] = abs(mean[constant])
        mean[constant] = 0.0
        scale = np.maximum(
            scale, 1.0
        )  # small columns stay as they are: then neither A nor H has large entries
        A[:, :p] /= scale
        A[:, p] = 1.0
        A *= y[:, None]
        T = np.diag(np.append(1 / scale, 1.0))
        T[p, :p] = -mean / scale
        root = np.sqrt(np.append(np.ones(p), rho))[:, None] * T
        return cls(A, root.T @ root, T, root, theta, rho, np.zeros(p + 1))

    def sample(self, rows: Array) -> Problem:
        """The problem of a sample of the rows; its optimum is near this one's."""
        share = len(rows) / len(self.A)
        A = np.asfortranarray(self.A[rows])
        return replace(
            self, A=A, H=share * self.H, root=np.sqrt(share) * self.root, linear=share * self.linear
        )

    def of_rows(self, rows: Array, inside: Array) -> Problem:
        """The problem with only ``rows`` (q,) undecided; the others are fixed, ``inside`` the margin or
        outside.
        """
        settled = inside & ~rows
        return replace(
            self,
            A=np.asfortranarray(self.A[rows]),
            H=self.normal_matrix(self.rho * settled),
            linear=self.linear + (self.theta + self.rho) * (self.A.T @ settled),
        )

    def objective(self, w: Array) -> float:
        """½wᵀHw + Σ θξ_i + (ρ/2)ξ_i² at the least feasible ξ."""
        xi = np.maximum(1 - self.A @ w, 0.0)
        root = self.root @ w
        return float(root @ root / 2 + self.theta * xi.sum() + self.rho / 2 * (xi @ xi))

    def normal_matrix(self, D: Array) -> Array:
        """H + AᵀDA for a diagonal ``D`` (q,)."""
        total = self.H.copy()
        for start in range(0, len(self.A), BLOCK):
            rows = self.A[start : start + BLOCK].T
            total += (rows * D[start : start + BLOCK]) @ rows.T
        return total

    def original(self, w: Array, omega: Array) -> tuple[Array, float]:
        """(α, β). An α becomes 0 if it is only rounding in Σ ω_i y_i x_i and in a margin."""
        original = self.T @ w
        alpha, scale = original[:-1], 1 / np.diag(self.T)[:-1]
        mean = abs(self.T[-1, :-1]) * scale
        terms = scale * (abs(self.A[:, :-1]).T @ omega) + mean * abs(self.A[:, -1] @ omega)
        if (abs(alpha) <= 1e-14 * terms).all() and (abs(alpha) * scale <= 1e-13).all():
            alpha = np.zeros(len(alpha))
        return alpha, float(original[-1])

    def kkt(self, w: Array, omega: Array) -> Kkt:
        """The residuals of (w, ω)."""
        terms = abs(self.H) @ abs(w) + abs(self.A).T @ omega
        residual = abs(self.H @ w - self.A.T @ omega) / np.where(terms > 0, terms, 1.0)
        gap = 1 - self.A @ w
        on = abs(gap) + abs(omega - np.clip(omega, 0, self.theta)) / self.theta
        outside = np.maximum(gap, 0) + abs(omega) / self.theta
        inside = np.maximum(-gap, 0) + abs(omega / (self.theta + self.rho * abs(gap)) - 1)
        rows = np.minimum(np.minimum(on, outside), inside)
        return Kkt(float(residual.max()), float(rows.max()))


def cholesky(matrix: Array) -> Array:
    """The lower factor of ``matrix``; a ridge above rounding is added if rounding made it indefinite."""
    ridge = np.finfo(float).eps * np.trace(matrix)
    for power in range(8):
        factor, failed = dpotrf(matrix, lower=1)
        if not failed:
            found: Array = factor
            return found
        matrix = matrix + ridge * 10**power * np.eye(len(matrix))
    raise AssertionError("unreachable: a ridge of 1e-8 of the trace makes any normal matrix definite")
