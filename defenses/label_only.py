"""Release the predicted label only, as (nearly) one-hot scores.

What is left for the adversary of the linear system: nothing (RVG §VII-B, "class label").
"""

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim


class LabelOnly(Defense):
    """Every row becomes its arg-max set: 1 − ε shared equally by the maximisers, ε by the other classes.

    ε = 0 gives the others −∞. An ε so large that another class would overtake the label is cut: then all
    classes are equal. A row of equal scores stays equal.
    """

    epsilon: float = Field(0.0, ge=0, lt=1, description="probability spread over the other classes")

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Log-probabilities (n, k) that depend on the arg-max set only."""
        k = log_c.shape[1]
        top = log_c == log_c.max(axis=1, keepdims=True)
        m = top.sum(axis=1, keepdims=True)
        other = np.minimum(self.epsilon / np.maximum(k - m, 1), 1 / k)
        label = np.maximum((1 - (k - m) * other) / m, other)  # rounding must not reorder equal ones
        with np.errstate(divide="ignore"):  # log 0 = −∞ is the answer
            labels: Array = np.log(np.where(top, label, other))
        return labels

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The arg-max set stays, or grows to all classes where ε was cut."""
        return Claim(argmax=True)
