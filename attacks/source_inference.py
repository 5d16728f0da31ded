"""Whose row is it? Each candidate's loss under each client's own model (Hu et al., IEEE TDSC 2023)."""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.people.membership import MembershipAttack, clients_log_scores
from vflens.numerics.membership import loss_scores
from vflens.plugins.attack import Estimated
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, statuses


class SourceInference(MembershipAttack):
    """ln p_y (n, K) by the own model of each of K clients, in name order: the largest names the source.

    The row's own client has just lowered its loss; the others have not.
    """

    estimates: ClassVar[Estimated] = "source"
    since: ClassVar[str] = "0.3"

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        x, y = view.candidates()
        beliefs = [
            self.scores(view, clients_log_scores(view, name, x, rng), x, y, rng) for name in view.members
        ]
        return Estimate(view.target, view.rows, np.column_stack(beliefs), statuses(len(x)))

    def scores(self, view: ServerView, answers: Array, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """Minus the losses (n,); see :meth:`MembershipAttack.scores`."""
        return loss_scores(answers, y)
