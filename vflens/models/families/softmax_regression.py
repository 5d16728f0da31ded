"""Softmax regression: parties send partial logits, and the coordinator releases scores of their sum."""

from typing import ClassVar, Literal

from vflens.models.family import ModelFamily
from vflens.models.part import Site
from vflens.models.softmax_regression import LinearBlock
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.shares.response import SIGMOID, Response
from vflens.types import Array


class SoftmaxRegression(ModelFamily):
    """Softmax regression; it has no settings of its own. See :mod:`vflens.models.softmax_regression`."""

    title: ClassVar[str] = "softmax regression"
    linear: ClassVar[bool] = True
    response: ClassVar[Response | None] = SIGMOID
    closed_forms: ClassVar[bool] = True

    family: Literal["softmax_regression"] = "softmax_regression"

    def passive_part(self, site: Site) -> LinearBlock:
        """Weights, and the bias at one party."""
        return LinearBlock(site.features, site.classes, bias=site.holds_bias, training=site.training)

    def active_part(self, site: Site) -> LinearBlock:
        """The same; it has the loss too."""
        return self.passive_part(site)

    def linear_systems(self, scores: Array, known: Array, weight: Array) -> list[tuple[Array, LinearSystem]]:
        """Differences of log-probabilities (RVG §III)."""
        return LinearSystem.from_scores(scores, known, weight)

    def in_the_clear(self, *, direct: bool) -> str:
        return (
            "the active party sees the summed logits of every step, and even with parameters withheld it "
            "recovers all training features up to one linear map; the gradient c − y tells the coordinator "
            "and every passive party the label of every training row."
        )


SOFTMAX_REGRESSION = SoftmaxRegression()
