"""mean*: the solution of the equations nearest to the columns' means (ours).

half* around the mean μ instead of ½: disclosed, or estimated from a few auxiliary rows; where rows are known,
around what the own columns say of each row (:mod:`vflens.plugins.conditional`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.types import Array, Estimate, Knowledge, Moments


class MeanStar(LinearAttack):
    """x̂ = A⁺b' + (I − P)μ: the solution nearest to the mean."""

    needs: ClassVar[frozenset[Knowledge]] = LinearAttack.needs | {Knowledge.MOMENTS}
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """The solution nearest to ``moments.mean``; see :meth:`vflens.plugins.attack.LinearAttack.solve`.

        Raises:
            KnowledgeError: no moments.
        """
        if moments is None:
            raise KnowledgeError(
                "mean_star needs the columns' means: disclose moments or auxiliary rows to the adversary"
            )
        return linear_estimate(nearest_solution(A, b, moments.mean), A, b)
