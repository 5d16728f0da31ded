"""Compare gradients of rows with one label to those with different ones: a hijacked training mixes them.

Fu et al., 2023 (NDSS), the Gradients Scrutinizer, with the settings of the authors' code.
"""

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Array

_LEAST = 3  # steps that a parabola needs


class GradientScrutinizer(Defense):
    """Compares, in each batch, gradients of pairs of rows with the same label and with different ones.

    Every ``every`` steps the score follows from all steps so far: near 1 where the two kinds of pairs stay
    apart and change smoothly. An alarm is a score below ``threshold``. Gradients stay as they are.
    """

    unclaimed: ClassVar[str] = "it finds a server that breaks the protocol, and withholds nothing"

    every: int = Field(50, ge=_LEAST, le=1_000_000, description="steps from score to score")
    threshold: float = Field(0.5, gt=0, lt=1, description="score below which an alarm is raised")
    steepness: float = Field(5.0, gt=0, le=1_000, description="factor λ of the score's sigmoid")
    offset: float = Field(0.7, ge=0, le=100, description="product of the three measures that scores one half")

    @property
    def needs_labels(self) -> bool:
        """A passive party reads labels of its own."""
        return True

    def on_received(self, g: Array, ctx: Context) -> Array:
        """``g`` (n, w) itself."""
        assert ctx.owner.labels is not None
        found = similarities(g, ctx.owner.labels[ctx.rows])
        if found is None:
            return g
        kept = np.vstack([ctx.memory.get("similarities", np.zeros((0, 4))), found])
        ctx.memory["similarities"] = kept
        if len(kept) % self.every == 0:
            value = score(kept, self.steepness, self.offset)
            ctx.suspect(value, alarm=value < self.threshold)
        return g


def similarities(g: Array, labels: Array) -> Array | None:
    """Mean and standard deviation of ½ + ½ cos over pairs of rows of ``g`` (n, w): those with the same label,
    then those with different ones, (4,). None where one kind of pair is missing.
    """
    lengths = np.linalg.norm(g, axis=1)
    rows = lengths > 0
    unit = g[rows] / lengths[rows, None]
    first, second = np.triu_indices(len(unit), 1)
    alike = 0.5 + 0.5 * (unit @ unit.T)[first, second]
    same = labels[rows][first] == labels[rows][second]
    if same.all() or not same.any():
        return None
    return np.array([f(alike[of]) for of in (same, ~same) for f in (np.mean, np.std)])


def score(kept: Array, steepness: float, offset: float) -> float:
    """σ(λ (G' E' V' − offset)) of the :func:`similarities` (t, 4) of all steps so far.

    With the authors' constants: G' = sign(G)|G|^0.4 of the gap G = (s − d)/(s + d) between the means s and d
    of the last step; E' = −log(7 E + e⁻²), E the mean RMS distance of both means from their parabola in time;
    V' = −log(V + e⁻¹), V the overlap of the intervals mean ± deviation of the last step by their union.
    """
    same, same_std, other, other_std = kept[-1]
    gap = (same - other) / (same + other) if same + other else 0.0
    low = (same - same_std, other - other_std)
    high = (same + same_std, other + other_std)
    union = max(high) - min(low)
    overlap = max(min(high) - max(low), 0.0) / union if union else 1.0
    error = (_misfit(kept[:, 0]) + _misfit(kept[:, 2])) / 2
    product = math.copysign(abs(gap) ** 0.4, gap)
    product *= -math.log(7 * error + math.exp(-2)) * -math.log(overlap + math.exp(-1))
    return 1 / (1 + math.exp(-steepness * (product - offset)))


def _misfit(values: Array) -> float:
    """RMS distance of ``values`` (t,) from the parabola in time that fits them best."""
    time = np.linspace(-1, 1, len(values))
    fitted = np.polynomial.Polynomial.fit(time, values, 2)(time)
    return float(np.sqrt(np.mean((values - fitted) ** 2)))
