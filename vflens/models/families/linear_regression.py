"""Linear regression: parties send parts of one number, and the coordinator releases their sum z.

Loss (z − y)², y in [0, 1] of the label's public bounds. A party's penalty and bias are those of softmax
regression.
"""

from typing import ClassVar, Literal

import numpy as np

from vflens.models.family import LARGEST_NUMBER, ModelFamily
from vflens.models.part import Site
from vflens.models.softmax_regression import LinearBlock
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.shares.response import IDENTITY, Response
from vflens.types import Array, Exchange, LabelKind


class _Block(LinearBlock):
    """Weights (1, d), and the bias (1,) at one party."""

    def loss_of(self, z: Array, y: Array) -> tuple[float, Array]:
        """The mean of (z − y)², and its gradient 2(z − y)/n (n, 1)."""
        residual = z - y
        return float(np.mean(residual**2)), 2 * residual / len(z)

    def log_scores(self, received: Array, x: Array, exchange: Exchange | None = None) -> Array:
        """The predictions z (n, 1)."""
        return received + self.forward(x)


class LinearRegression(ModelFamily):
    """Linear regression of a numeric label; it has no settings of its own. See the module."""

    title: ClassVar[str] = "linear regression"
    linear: ClassVar[bool] = True
    label_kind: ClassVar[LabelKind] = "number"
    response: ClassVar[Response | None] = IDENTITY
    largest_part: ClassVar[float] = LARGEST_NUMBER / 1024  # of so many parties, or fewer
    unused_hooks: ClassVar[frozenset[str]] = frozenset(
        {"wrap_model", "penalty", "on_scores", "on_labels", "on_batch_labels", "on_outputs"}
    )  # the last four act on classes or their log-probabilities

    family: Literal["linear_regression"] = "linear_regression"

    def passive_part(self, site: Site) -> _Block:
        """Weights, and the bias at one party."""
        return _Block(site.features, site.classes, bias=site.holds_bias, training=site.training)

    def active_part(self, site: Site) -> _Block:
        """The same; it has the loss too."""
        return self.passive_part(site)

    def scores(self, combined: Array) -> Array:
        """The sum as it is: z (n, 1)."""
        return combined

    def may_be_scores(self, scores: Array) -> bool:
        """Whether they are within ±:data:`vflens.models.family.LARGEST_NUMBER`: finite in every unit."""
        return bool((np.abs(scores) <= LARGEST_NUMBER).all())

    def linear_systems(self, scores: Array, known: Array, weight: Array) -> list[tuple[Array, LinearSystem]]:
        """One equation a row: W x = z − known."""
        return [(np.arange(len(scores)), LinearSystem(weight, scores - known, saturated=False))]

    def in_the_clear(self, *, direct: bool) -> str:
        return (
            "the active party sees the summed predictions of every step, and even with parameters withheld "
            "it recovers all training features up to one linear map; the gradient 2(z − y) tells the "
            "coordinator and every passive party the labels of the first step, where z is 0, and later how "
            "far each training row's prediction is from its label."
        )


LINEAR_REGRESSION = LinearRegression()
