"""Score the rarer class by the length of the gradient (Li et al., 2022, NS).

Two classes; a model that knows the rarer class less well gives it longer gradients.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.binary import binary
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase


class NormScoring(Attack):
    """The belief in class 1 is ‖g_i‖ over the longest."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimates = "labels"

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, 2); see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: there are not two classes.
        """
        norms = np.linalg.norm(view.gradients(), axis=1)
        return binary(view, norms / max(norms.max(initial=0.0), np.finfo(float).tiny))
