"""Disclose W H⁻¹ instead of W: the adversary solves for H x (RVG Remark 6).

Scores stay exact. H* is the transform that misleads least squares most (Theorem 3).
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from vflens.defenses._orthonormal import drawn_matrix
from vflens.numerics.linear_system import first_differences
from vflens.numerics.theory.closed_forms import second_moment
from vflens.numerics.theory.distortion_theory import worst_transform
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class TransformParameters(Defense):
    """W ↦ W Hᵀ, H orthonormal.

    "least_squares" is H* = −V Uᵀ, U S Vᵀ = svd(P K₀), from the owner's own weights and rows. The others are
    drawn once from its secret. Right-hand sides stay: S_F may be empty, which gives the defence away.
    """

    needs_weight: ClassVar[bool] = True
    kind: Literal["least_squares", "negation", "random", "permutation", "signs"] = Field(
        "least_squares", description="H*; or −I, uniform on O(d), a permutation, a sign per feature"
    )

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array]:
        """ "weight" (k, d) becomes W Hᵀ; a bias stays."""
        return {**w, "weight": w["weight"] @ self._matrix(w["weight"], ctx).T}

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The scores do not move."""
        return Claim(argmax=True, scores_exact=True)

    def _matrix(self, weight: Array, ctx: Context) -> Array:
        if self.kind != "least_squares":
            return drawn_matrix(self.kind, weight.shape[1], ctx.stream())
        assert ctx.owner.features is not None  # a data party has features
        K0 = second_moment(ctx.owner.features, 0.0)
        return worst_transform(first_differences(len(weight)) @ weight, K0).matrix
