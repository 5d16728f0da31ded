"""The adversary's error under distorted scores and parameters: RVG Theorems 3 and 4, VAR's closed forms.

All for **unclipped** estimates, errors per feature. K₀ and K_½ are second moments around 0 and ½·1
(:func:`vflens.numerics.theory.closed_forms.second_moment`), μ the mean, P = A⁺A. The adversary solves with
``believed`` (Aₙ below) instead of A, and with the exact right-hand side b' = A x. Both matrices have the same
basis of equations, J.
"""

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.linear_system import pseudo_inverse, row_projector


@dataclass(frozen=True, eq=False)
class WorstTransform:
    """An orthonormal ``matrix`` H* (d, d) and the ``mse`` of ``ls`` under it."""

    matrix: Array
    mse: float


@dataclass(frozen=True, eq=False)
class BestNoise:
    """``direction`` v₁ (k,) of unit length, up to its sign, and the MSE gained at the given power."""

    direction: Array
    gain: float


# -- RVG §VII-A: transforms that leave the scores as they are ------------------------------------------


def transformed_ls_mse(A: Array, K0: Array, H: Array) -> float:
    """MSE of ls against H x or W₀H⁻¹, H orthonormal: [Tr K₀ + Tr(P K₀) − 2 Tr(H P K₀)]/d.

    The adversary's matrix is A Hᵀ, its estimate H P x. H = I gives Theorem 2, H = −I gains (4/d) Tr(P K₀).
    """
    PK = row_projector(A) @ K0
    return float(np.trace(K0) + np.trace(PK) - 2 * np.trace(H @ PK)) / len(K0)


def worst_transform(A: Array, K0: Array) -> WorstTransform:
    """H* = −V Uᵀ with U S Vᵀ = svd(P K₀), and [Tr((I + P)K₀) + 2‖P K₀‖_*]/d (RVG Theorem 3).

    Departures from the paper: (28)'s first term is Tr((I + P)K₀), and the 1/d stays.
    """
    PK = row_projector(A) @ K0
    U, s, Vt = np.linalg.svd(PK)
    H: Array = -(U @ Vt).T
    return WorstTransform(H, float(np.trace(K0) + np.trace(PK) + 2 * s.sum()) / len(K0))


# -- RVG §VII-B: noise on the scores -------------------------------------------------------------------


def logit_moment(noise: Array) -> Array:
    """S = E nnᵀ (k, k) of ``noise`` on logits (N, k), each row minus its mean, which softmax removes."""
    n = noise - noise.mean(axis=1, keepdims=True)
    S: Array = n.T @ n / len(n)
    return S


def noise_weight(A: Array, J: Array) -> Array:
    """B = JᵀA⁺ᵀA⁺J/d (k, k): noise of second moment S on the logits adds Tr(B S) to the MSE of ls and half*.

    Args:
        A: (k − 1, d), any rank.
        J: the basis of the equations (k − 1, k).
    """
    M = pseudo_inverse(A) @ J
    B: Array = M.T @ M / A.shape[1]
    return B


def noise_gain(A: Array, J: Array, S: Array) -> float:
    """Tr(A⁺J S Jᵀ A⁺ᵀ)/d: the loss of ls and half* with logits z + n, S = E nnᵀ (k, k).

    The noise may depend on x: A⁺Jn lies in the row space of A, the error without noise is orthogonal to it.

    Args:
        A: (k − 1, d) of full row rank. With less, the noise moves b' out of range(A); the loss of A⁺b' is
            still this.
        J: the basis of the equations (k − 1, k).
        S: second moment of the noise.
    """
    return float(np.vdot(noise_weight(A, J), S))


def best_noise(A: Array, J: Array, power: float) -> BestNoise:
    """S* = α v₁v₁ᵀ under Tr S ≤ α = ``power``: the gain is σ₁²α/d (RVG Theorem 4).

    v₁ and σ₁ are the leading right singular vector and value of A⁺J. Its sign is free here; it matters for
    clipped estimates.
    """
    _, s, vt = np.linalg.svd(pseudo_inverse(A) @ J, full_matrices=False)
    return BestNoise(vt[0], float(s[0] ** 2 * power / A.shape[1]))


# -- VAR §V: distorted parameters ----------------------------------------------------------------------


def rotated_half_star_mse(A: Array, K0: Array, mean: Array, R: Array) -> float:
    """MSE of half* against Aₙ = A R, RᵀR = I: [Tr K_½ − Tr(P(2K₀Rᵀ − K₀ − R M Rᵀ))]/d, M = 1(μ − ¼1)ᵀ (VAR
    (40)).
    """
    P, M = row_projector(A), _mean_matrix(mean)
    trace = np.trace(P @ (2 * K0 @ R.T - K0 - R @ M @ R.T))
    return float(np.trace(_half_moment(K0, mean)) - trace) / len(K0)


def rotated_half_star_gradient(A: Array, K0: Array, mean: Array, R: Array) -> Array:
    """Gradient (d, d) in R of (1/d)Tr(P(2K₀Rᵀ − K₀ − R M Rᵀ)): (2PK₀ − PR(M + Mᵀ))/d.

    VAR (42) has the opposite sign, which would help the adversary.
    """
    P, M = row_projector(A), _mean_matrix(mean)
    gradient: Array = (2 * P @ K0 - P @ R @ (M + M.T)) / len(K0)
    return gradient


def rotated_ls_mse(K0: Array, R: Array) -> float:
    """MSE of ls against Aₙ = A R where A has full column rank: (2/d) Tr(K₀ − R K₀) (VAR (46))."""
    return float(2 * (np.trace(K0) - np.trace(R @ K0))) / len(K0)


def single_feature_mse(square_mean: float, A: Array, believed: Array) -> float:
    """MSE of ls on one feature (d = 1): E[x²](1 − AₙᵀA/(AₙᵀAₙ))² (VAR (48)).

    Args:
        square_mean: E x².
        A: (m, 1) or (m,).
        believed: Aₙ, shaped as A, not 0.
    """
    a, n = np.ravel(A), np.ravel(believed)
    return float(square_mean * (1 - n @ a / (n @ n)) ** 2)


def two_class_half_star_mse(A: Array, K0: Array, mean: Array, believed: Array) -> float:
    """MSE of half* on one equation (k = 2): [Tr K_½ + (A K₀Aᵀ − 2A K₀Aₙᵀ + Aₙ M Aₙᵀ)/‖Aₙ‖²]/d (VAR (52)).

    Args:
        A: (1, d) or (d,).
        K0: second moment around 0 (d, d).
        mean: μ (d,).
        believed: Aₙ, shaped as A, not 0.
    """
    a, n, M = np.ravel(A), np.ravel(believed), _mean_matrix(mean)
    moved = a @ K0 @ a - 2 * a @ K0 @ n + n @ M @ n
    return float(np.trace(_half_moment(K0, mean)) + moved / (n @ n)) / len(K0)


def _mean_matrix(mean: Array) -> Array:
    """M = 1(μ − ¼1)ᵀ."""
    M: Array = np.outer(np.ones(len(mean)), mean - 0.25)
    return M


def _half_moment(K0: Array, mean: Array) -> Array:
    """K_½ = K₀ − ½(μ1ᵀ + 1μᵀ) + ¼11ᵀ."""
    one = np.ones(len(mean))
    K: Array = K0 - 0.5 * (np.outer(mean, one) + np.outer(one, mean)) + 0.25 * np.outer(one, one)
    return K
