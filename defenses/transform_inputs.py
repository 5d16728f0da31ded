"""Train on H x instead of x: the model is another, its scores are the same (RVG §VII-A).

What the adversary solves for is H x, which it takes for x. Who knows or guesses H undoes it.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from vflens.defenses._orthonormal import drawn_matrix
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Owner


class TransformInputs(Defense):
    """x ↦ H x with H orthonormal, drawn once from the owner's secret; or x ↦ 1 − x.

    An L2 penalty does not change under H: the optimum of W x is that of (W Hᵀ)(H x) (RVG Proposition 4).
    x ↦ 1 − x, −I followed by rescaling to [0, 1], moves the bias too: it keeps the optimum where the penalty
    spares the bias. Short of the optimum plain gradient descent keeps the scores as well under every H, Adam
    under negation, permutation and signs; neither does for 1 − x.
    """

    kind: Literal["complement", "negation", "random", "permutation", "signs"] = Field(
        "complement", description="1 − x; or H = −I, uniform on O(d), a permutation, a sign per feature"
    )

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """H (d, d), unless it is 1 − x."""
        if self.kind == "complement":
            return {}
        assert owner.features is not None  # a data party has features
        return {"matrix": drawn_matrix(self.kind, owner.features.shape[1], rng)}

    def on_inputs(self, x: Array, ctx: Context) -> Array:
        """H x for every row of ``x`` (n, d)."""
        if self.kind == "complement":
            return 1.0 - x
        transformed: Array = x @ ctx.state["matrix"].T
        return transformed

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The optimum's scores stay; for 1 − x only if the bias is not penalised."""
        return Claim(same_optimum=True, unpenalised_bias=self.kind == "complement")
