"""Training rows have a smaller loss: membership from the client's model alone (Yeom et al., 2018)."""

import numpy as np

from vflens.attacks.helpers.people.membership import MembershipAttack
from vflens.numerics.membership import loss_scores
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array


class LossThreshold(MembershipAttack):
    """The score of a candidate is ln p_y, minus its cross-entropy; any threshold is the scorer's."""

    def scores(self, view: ServerView, answers: Array, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """Minus the losses (n,); see :meth:`MembershipAttack.scores`."""
        return loss_scores(answers, y)
