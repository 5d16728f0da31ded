"""The adversary's linear system A x = b' and its minimum-norm geometry (RVG §III, §V).

Logistic regression releases c = softmax(z) with z = W_act y + W_pas x + bias. With J the first
differences of consecutive classes, J ln c = J z, hence

    A x = b',    A = J W_pas,    b' = J (ln c − W_act y − bias).

All functions take a batch: N rows share ``A`` (m, d), and ``b`` (N, m) has one right-hand side per row. m = 0
(no equations), m ≥ d, rank-deficient A and zero rows in A are all defined. On consistent systems no result
depends on the basis of the equations. With b' outside range(A) the minimum-norm solutions do (by 0.1 and
more), so the basis J is part of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.array import Array

#: Singular values at most this share of the largest count as 0. It is far above float64 rounding and far
#: below what training leaves: such a direction would multiply rounding by 1e10.
RANK_RTOL = 1e-10

#: b is outside range(A) when min_x ‖A x − b‖ exceeds this share of ‖b‖ + ‖A‖_F. The second term is the
#: size of A x for x in the box, so that the rounding of a b' near 0 does not decide.
RANGE_RTOL = 1e-6


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A x = b for several rows at once: ``A`` (m, d) and ``b`` (N, m), finite float64.

    ``saturated``: a score was exactly 0, so fewer than k − 1 equations are left. ``log_c``
    (N, m + 1) are the positive scores that the equations compare, None for a system without scores.
    """

    A: Array
    b: Array
    saturated: bool
    log_c: Array | None = None

    @classmethod
    def from_scores(cls, log_c: Array, known: Array, weight: Array) -> list[tuple[Array, LinearSystem]]:
        """One system for each group of rows whose scores are positive on the same classes.

        A class of probability 0 (log −∞) has no finite log-ratio. The differences of consecutive classes
        among the others remain, one fewer for each class at 0. A one-hot row keeps none.

        Args:
            log_c: log-probabilities (N, k), −inf legal.
            known: the adversary's own part of the logits, W_act y + bias (N, k).
            weight: the weights (k, d) of the unknown columns.

        Returns:
            (row indices, system) per group; each row is in exactly one. No group for N = 0.
        """
        log_c, known, weight = (np.asarray(a, np.float64) for a in (log_c, known, weight))
        patterns, group = np.unique(np.isfinite(log_c), axis=0, return_inverse=True)
        groups = [np.flatnonzero(group.reshape(-1) == g) for g in range(len(patterns))]
        return [
            (rows, cls._of(log_c[rows], known[rows], weight, s))
            for rows, s in zip(groups, patterns, strict=True)
        ]

    @classmethod
    def _of(cls, log_c: Array, known: Array, weight: Array, classes: Array) -> LinearSystem:
        J = first_differences(int(classes.sum()))
        b = (log_c - known)[:, classes] @ J.T
        return cls(J @ weight[classes], b, not bool(classes.all()), log_c[:, classes])


def first_differences(k: int) -> Array:
    """J (k − 1, k): row m has −1 at m and +1 at m + 1; (0, k) for k ≤ 1 (RVG §III)."""
    return np.diff(np.eye(k), axis=0)


def pseudo_inverse(A: Array) -> Array:
    """A⁺ (d, m), with singular values up to :data:`RANK_RTOL` of the largest taken as 0."""
    inverse: Array = np.linalg.pinv(A, rcond=RANK_RTOL)
    return inverse


def row_basis(A: Array) -> Array:
    """Orthonormal columns Q (d, r) that span the rows of A; r is its rank to :data:`RANK_RTOL`."""
    _, s, vt = np.linalg.svd(A, full_matrices=False)
    Q: Array = vt[s > RANK_RTOL * s.max(initial=0.0)].T
    return Q


def null_basis(A: Array) -> Array:
    """Orthonormal columns W (d, d − r) that span the null space of A, r its rank as in :func:`row_basis`."""
    Q = row_basis(A)
    W: Array = np.linalg.svd(Q, full_matrices=True)[0][:, Q.shape[1] :]
    return W


def row_projector(A: Array) -> Array:
    """P = A⁺A (d, d), the orthogonal projector on the rows of A."""
    Q = row_basis(A)
    P: Array = Q @ Q.T
    return P


def nearest_solution(A: Array, b: Array, center: Array) -> Array:
    """The point (N, d) of {x : A x = b} nearest to ``center`` (d,) or (N, d).

    x = center + A⁺(b − A center) = A⁺b + (I − P) center. If no x solves the equations, it is the nearest
    least-squares solution.
    """
    x: Array = center + (b - center @ A.T) @ pseudo_inverse(A).T
    return x


def residual_norm(A: Array, b: Array, x: Array) -> Array:
    """‖A x − b‖ (N,) for x (N, d)."""
    norm: Array = np.linalg.norm(x @ A.T - b, axis=1)
    return norm


def in_range(A: Array, b: Array) -> Array:
    """Whether A x = b has a solution, bool (N,), to :data:`RANGE_RTOL`.

    min_x ‖A x − b‖ is the length of the part of b orthogonal to the columns of A.
    """
    U = row_basis(A.T)
    if U.shape[1] == len(A):
        return np.ones(len(b), bool)
    distance = np.linalg.norm(b - (b @ U) @ U.T, axis=1)
    tolerance = RANGE_RTOL * (np.linalg.norm(b, axis=1) + np.linalg.norm(A))
    inside: Array = distance <= tolerance
    return inside
