"""Deep leakage from the gradient of a round: the rows whose gradient comes nearest to it.

Zhu et al., 2019, with labels restored first as in iDLG (Zhao et al., 2020), or Geiping et al., 2020.
"""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from vflens.attacks.helpers.gradients.inversion_of_rounds import Descent
from vflens.attacks.helpers.gradients.rounds import RoundAttack, known_network
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Estimate


class DeepLeakage(Descent, RoundAttack):
    """FedAdOb's WGI without any grant, where clients share the whole model and take one local step."""

    exact: ClassVar[bool] = False

    label: Literal["restored", "learned"] = Field(
        "restored", description="lbfgs: labels are restored first, or found together with the rows"
    )

    @model_validator(mode="after")
    def _adam_has_labels(self) -> Self:
        if self.optimizer == "adam" and self.label == "learned":
            raise ValueError(
                'label = "learned": optimizer = "adam" needs labels, set optimizer = "lbfgs" or leave it out'
            )
        return self

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d); extra "distance" (n,); see :meth:`Descent.of_round`.

        Raises:
            KnowledgeError: the clients keep a part of the model to themselves.
        """
        gradient, model = view.gradient(view.round), known_network(view, view.parameters(view.round))
        labels = self.labels(view, model, gradient, rng) if self.label == "restored" else None
        return self.of_round(view, model, gradient, labels, rng)
