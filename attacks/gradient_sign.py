"""Read labels off the signs of the gradient, where the summed embeddings are the logits.

g_c = p_c − 1[c = y]: the label is the only class with a negative entry (Liu et al., 2020; FedAdOb §3). It
also reads softmax regression trained in the clear.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.networks.directions import has_top
from vflens.errors import KnowledgeError
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class GradientSign(Attack):
    """The belief in a class is 1 where its gradient is the least of the row, else 0; ties share."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimates = "labels"

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: the gradients are not those of logits.
        """
        g, behind = view.gradients(), " behind a top model" if has_top(view) else ""
        if len(g) and (behind or g.shape[1] != view.n_classes):
            raise KnowledgeError(
                f"gradients of width {g.shape[1]}{behind} are not those of {view.n_classes} logits: "
                "gradient_sign needs trainable_top = false"
            )
        least: Array = g == g.min(axis=1, initial=np.inf, keepdims=True)
        beliefs = least / np.maximum(least.sum(axis=1, keepdims=True), 1)
        return Estimate(view.target, view.rows, beliefs.reshape(-1, view.n_classes), statuses(len(view.rows)))
