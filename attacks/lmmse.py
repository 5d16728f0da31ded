"""Linear minimum mean square error: the best linear estimate with known mean and covariance (ours).

For Gaussian features it is the conditional mean, hence the best of all estimators. With both moments, errors
can be below the bounds on ``ls`` and ``half_star``, which do not cover it. Where rows are known, mean and
covariance are those given the own columns: :mod:`vflens.plugins.conditional`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.types import Array, Estimate, Knowledge, Moments


class LinearMMSE(LinearAttack):
    """x̂ = μ + K Aᵀ(A K Aᵀ)⁺(b' − Aμ), K the covariance and μ the mean."""

    needs: ClassVar[frozenset[Knowledge]] = LinearAttack.needs | {Knowledge.MOMENTS}
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The linear MMSE estimate; see :meth:`vflens.plugins.attack.LinearAttack.solve`.

        With K = L Lᵀ and x = μ + L u, u is white and K Aᵀ(A K Aᵀ)⁺ = L (A L)⁺: the estimate is the
        smallest u that solves (A L) u = b' − Aμ. Never forming A K Aᵀ keeps its condition unsquared.

        Raises:
            KnowledgeError: no moments, or no covariance.
        """
        if moments is None or moments.covariance is None:
            raise KnowledgeError(
                "lmmse needs the columns' mean and covariance: disclose both to the adversary, or at least "
                "two auxiliary rows, or use mean_star"
            )
        L = _square_root(moments.covariance)
        u = nearest_solution(A @ L, b - moments.mean @ A.T, np.zeros(L.shape[1]))
        return linear_estimate(moments.mean + u @ L.T, A, b)


def _square_root(K: Array) -> Array:
    """L (d, d) with L Lᵀ = K, for symmetric positive semidefinite K; rounding below 0 counts as 0."""
    eigenvalues, vectors = np.linalg.eigh(K)
    root: Array = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    return root
