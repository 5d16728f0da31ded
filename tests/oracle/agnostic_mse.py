"""The closed forms of the errors of attacks with estimated scores (VAR §IV)."""

from __future__ import annotations

import numpy as np

from vflens.array import Array
from vflens.numerics.linear_system import pseudo_inverse, row_projector


def agnostic_ls_mse(A: Array, K_scores: Array) -> float:
    """Tr(A(AᵀA)⁻²Aᵀ K_cc)/d for A of full column rank (VAR (13)).

    Args:
        A: (m, d) with rank d.
        K_scores: K_cc = E(ĉ' − c')(ĉ' − c')ᵀ (m, m), the error of the estimated log-ratios.
    """
    G = np.linalg.inv(A.T @ A)
    return float(np.trace(A @ G @ G @ A.T @ K_scores) / A.shape[1])


def agnostic_half_star_mse(A: Array, K_half: Array, K_scores: Array) -> float:
    """[Tr((I − P)K_½) + Tr(A⁺ᵀA⁺ K_cc)]/d, any rank (VAR (21)); no cross term, as (I − P)A⁺ = 0."""
    A_plus = pseudo_inverse(A)
    left = np.trace(K_half) - np.trace(row_projector(A) @ K_half)
    return float((left + np.trace(A_plus.T @ A_plus @ K_scores)) / A.shape[1])
