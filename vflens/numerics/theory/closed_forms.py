"""Errors of the minimum-norm estimators: closed forms and bounds of RVG §V, Theorem 2.

Let x̂ be the solution of A x = b' nearest to a point z: ``ls`` for z = 0, ``half_star`` for z = ½·1,
``mean_star`` for z = μ, none of them clipped. With exact scores and P = A⁺A,

    x − x̂ = (I − P)(x − z),    so    E‖x − x̂‖² = Tr((I − P) K_z),    K_z = E (x − z)(x − z)ᵀ.

**These figures cover this family of estimators and no other**: A = (1, 2) and x uniform on {0, 1}² give
half* at least 1/8, and RCC2 reaches 9/80. Errors are per feature, in units of columns scaled to [0, 1].

Theorem 1 (exact scores, x in the box, no clipping needed): ‖x − RCC2‖ ≤ ‖x − half*‖ ≤ ‖x − half‖ for
*every* row; :func:`order_violations` counts the rows that break it.
"""

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.linear_system import null_basis, row_basis


@dataclass(frozen=True)
class Bounds:
    """``lower`` ≤ MSE per feature ≤ ``upper``."""

    lower: float
    upper: float


def second_moment(x: Array, center: Array | float) -> Array:
    """K_z = E (x − z)(x − z)ᵀ (d, d) over the rows of ``x`` (N, d), N ≥ 1; ``center`` z is (d,) or a number.

    With z = μ, the rows' own mean, it is the covariance with divisor N.
    """
    y = x - center
    K: Array = y.T @ y / len(y)
    return K


def nearest_solution_mse(A: Array, K: Array) -> float:
    """Tr((I − P) K_z)/d: the MSE of the solution nearest to z (RVG Theorem 2, first half).

    Args:
        A: (m, d), any rank; m may be 0.
        K: K_z (d, d) for the estimator's own z.
    """
    W = null_basis(A)  # Tr(WᵀKW): no cancellation, and exactly 0 for an A of full column rank
    return float(np.sum((K @ W) * W)) / len(K)


def nearest_solution_column_mse(A: Array, K: Array) -> Array:
    """e_jᵀ(I − P) K_z (I − P) e_j (d,): the same column by column (ours); its mean is the MSE."""
    W = null_basis(A)
    diagonal: Array = np.einsum("ij,jk,ik->i", W, W.T @ K @ W, W)
    return diagonal


def bounds_before_training(K: Array, equations: int) -> Bounds:
    """Bounds on the MSE of the solution nearest to z for *every* A of full rank r = min(d, equations).

    With λ the eigenvalues of K_z in non-increasing order, (1/d) Σ_{i>r} λ_i ≤ MSE ≤ (1/d) Σ_{i≤d−r} λ_i
    (RVG Theorem 2). An A of lower rank keeps the lower bound and breaks the upper one.

    Args:
        K: K_z (d, d).
        equations: k − 1 for k classes.
    """
    d = len(K)
    free = d - min(d, equations)
    eigenvalues = np.maximum(np.linalg.eigvalsh(K), 0.0)  # ascending
    return Bounds(float(eigenvalues[:free].sum()) / d, float(eigenvalues[d - free :].sum()) / d)


def weak_lower_bound(K_mean: Array, equations: int) -> float:
    """(1/d) Σ_{i>r} eig(K_μ): a lower bound for *every* point z at once (RVG Theorem 2, last inequality).

    After training Tr((I − P) K_μ)/d, :func:`nearest_solution_mse` with K_μ, is at least as large and a lower
    bound too.
    """
    return bounds_before_training(K_mean, equations).lower


def reflection_gain(A: Array, K_half: Array) -> float:
    """(4/d) Tr(P K_½): what ls and half* lose when training uses 1 − x instead of x (RVG §VII-A).

    Both are unclipped, and both assume training on x. It is at most (4/d) Σ_{i≤r} γ_i, γ the eigenvalues of
    K_½.
    """
    Q = row_basis(A)
    return float(4 * np.sum((K_half @ Q) * Q)) / len(K_half)


def stretched_mse(x: Array, *, mirrored: bool = False) -> float:
    """Mean of (x̂ − x)², x̂ = (x − x_m)/(x_M − x_m): the error of the black box on one column (RVG §VI).

    Args:
        x: the column's values (N,) in the observed rows, from x_m to x_M > x_m.
        mirrored: the error of 1 − x̂, its estimate after a wrong guess of the signs.
    """
    low, high = x.min(), x.max()
    unit = (x - low) / (high - low)
    return float(np.mean(((1 - unit if mirrored else unit) - x) ** 2))


def stretched_bound(x: Array) -> float:
    """(x_M − 1)² + x_m² ≥ :func:`stretched_mse` of the same values in [0, 1] (RVG (71))."""
    return float((x.max() - 1) ** 2 + x.min() ** 2)


def order_violations(better: Array, worse: Array, slack: float = 1e-9) -> int:
    """The number of rows whose error norm ``better`` (N,) exceeds ``worse`` (N,) by more than ``slack``.

    By Theorem 1 it is 0 for (RCC2, half*) and (half*, half). The slack allows for rounding.
    """
    return int(np.count_nonzero(better > worse + slack))
