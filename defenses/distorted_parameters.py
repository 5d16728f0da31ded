"""Disclose weights at an agreed distance from the true ones, chosen to mislead half* most (VAR §V).

Scores stay exact, and so does the agreed distortion of the disclosed weights.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError
from vflens.numerics.theory.closed_forms import second_moment
from vflens.numerics.theory.distortion import (
    distorted_feature,
    distorted_two_classes,
    largest_distortion,
    largest_rotation,
)
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim

_FAINT = 1e-6  # disclosed equations this much shorter than the true ones make every solution explode


class DistortedParameters(Defense):
    """Wₙ instead of W with g = ‖W − Wₙ‖²_F/(dk) = ε.

    * d = 1 (VAR's case iii) and k = 2 (iv): the global optimum, :mod:`vflens.numerics.theory.distortion`.
    * k > 2, d > 1 (i and ii), or ``rotate``: Wₙ = W R, R orthonormal, the best of several starts; needs
      pymanopt.

    An ε outside this model's admissible range is refused at the disclosure, with the range.
    """

    needs_weight: ClassVar[bool] = True
    epsilon: float = Field(
        1e-3, gt=0, allow_inf_nan=False, description="agreed distortion ‖W − Wₙ‖²/(dk) of the weights"
    )
    starts: int = Field(2, ge=1, description="rotations: pairs of starts from each of four bases")
    rotate: bool = Field(False, description="a rotation for two classes too, as VAR's Fig. 9 compares; d > 1")

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array]:
        """ "weight" (k, d) becomes Wₙ; a bias stays.

        Raises:
            ConfigError: ε is infeasible or leaves the error unbounded; pymanopt is needed and missing.
        """
        return {**w, "weight": self._distorted(w["weight"], ctx)}

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The scores do not move, and the disclosed weights are ε apart from the true ones."""
        return Claim(argmax=True, scores_exact=True, distortion=self.epsilon)

    def _distorted(self, W: Array, ctx: Context) -> Array:
        self._check(W)
        assert ctx.owner.features is not None  # a data party has features
        K0, mean = second_moment(ctx.owner.features, 0.0), ctx.owner.features.mean(axis=0)
        k, d = W.shape
        if d == 1:
            return self._checked(W, distorted_feature(W[:, 0], float(K0[0, 0]), self.epsilon)[:, None])
        if k == 2 and not self.rotate:
            return self._checked(W, distorted_two_classes(W, K0, mean, self.epsilon))
        from vflens.defenses._rotation import RotationProblem, best_rotation

        R = best_rotation(RotationProblem(W, K0, mean, self.epsilon), self.starts, ctx.stream())
        turned: Array = W @ R
        return turned

    def _check(self, W: Array) -> None:
        if self.rotate and W.shape[1] == 1:
            raise ConfigError(
                "distorted_parameters: rotate = true, but one column has no rotations: leave it out"
            )
        closed = self.rotate or min(W.shape[1] - 1, len(W) - 2) > 0
        end = largest_rotation(W) if closed else largest_distortion(W)
        if self.epsilon < end or (closed and self.epsilon == end):
            return
        sign = "<=" if closed else "<"
        raise ConfigError(
            f"distorted_parameters: epsilon = {self.epsilon:g}, but these weights admit 0 < epsilon {sign} "
            f"{end:.6g} only: choose one of those"
        )

    def _checked(self, W: Array, distorted: Array) -> Array:
        """``distorted`` unless its equations are degenerate."""
        left, true = (np.linalg.norm(np.diff(V, axis=0)) for V in (distorted, W))
        if left < _FAINT * true:
            raise ConfigError(
                f"distorted_parameters: epsilon = {self.epsilon:g} leaves next to nothing of the equations, "
                f"these weights admit 0 < epsilon < {largest_distortion(W):.6g}: choose one well inside"
            )
        return distorted
