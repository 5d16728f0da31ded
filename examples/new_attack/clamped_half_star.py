"""half*, clipped into the box: no row is estimated worse than by half* itself."""

import numpy as np

from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import LinearAttack, linear_estimate


class ClampedHalfStar(LinearAttack):
    """The solution of A x = b nearest to one half, with every value moved into [0, 1]."""

    def solve(self, A, b, *, rng, moments=None):
        """Estimate x (N, d) from A (m, d) and b (N, m)."""
        nearest = nearest_solution(A, b, np.full(A.shape[1], 0.5))
        return linear_estimate(nearest.clip(0.0, 1.0), A, b)
