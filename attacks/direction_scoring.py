"""Score a class by the angle to the gradient of one row known to be in it (Li et al., 2022, DS).

Two classes; gradients of one class point to one side. One label of class 1 has to be granted.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.binary import binary
from vflens.attacks.helpers.networks.directions import DECIMALS
from vflens.errors import KnowledgeError
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase


class DirectionScoring(Attack):
    """The belief in class 1 is (1 + cos(g_i, g₊))/2, g₊ the gradient of the first row granted as class 1."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS, Knowledge.KNOWN_LABELS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimates = "labels"

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, 2); see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: there are not two classes, or no row was granted as class 1.
        """
        rows, labels = view.known_labels()
        if not (labels == 1).any():
            raise KnowledgeError(
                f"party {view.target!r} granted no label of class 1: direction_scoring needs one"
            )
        known = view.gradients(rows[labels == 1][:1])[0]
        g = view.gradients().reshape(-1, len(known))
        lengths = np.linalg.norm(g, axis=1) * np.linalg.norm(known)
        cosine = np.clip((g @ known) / np.where(lengths > 0, lengths, 1.0), -1, 1)
        return binary(view, (1 + cosine.round(DECIMALS)) / 2)
