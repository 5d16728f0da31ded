"""Scoring of membership: how well an adversary's scores rank a client's training rows before other rows."""

from __future__ import annotations

from typing import Any

from vflens.numerics.measures.ranking import auc, true_positive_rate
from vflens.protocol.acts import Submission
from vflens.score.service import ScoringService
from vflens.storage.metrics import Name
from vflens.types import Array

#: Rates of other rows that are taken for training rows.
FALSE_POSITIVE_RATES = (0.01, 0.1)


class MembershipScoring(ScoringService):
    """AUC, and the share of training rows that are found at few false alarms; a guess without an attack has
    AUC ½, and finds as many as it raises false alarms.

    Args:
        members: which candidates are training rows, bool (n,).
        service: see :class:`vflens.score.service.ScoringService`.
    """

    def __init__(self, *, members: Array, **service: Any) -> None:
        super().__init__(width=1, **service)
        self._members = members

    def keep_errors(self, submission: Submission) -> dict[str, float]:
        """See :meth:`vflens.score.service.ScoringService.keep_errors`; errors are 1 − AUC."""
        add, members = self.adding(submission), self._members
        add(Name.BLIND_MEMBERSHIP_AUC, 0.5)
        errors = {}
        for guess in submission.guesses:
            scores = guess.values[:, 0]
            found = auc(scores[:, None].repeat(2, axis=1) * [-1.0, 1.0], members.astype(int))
            add(Name.MEMBERSHIP_AUC, found, attack=guess.attack)
            for rate in FALSE_POSITIVE_RATES:
                right = true_positive_rate(scores, members, rate)
                add(Name.MEMBERSHIP_TPR, right, attack=guess.attack, detail=f"{rate:g}")
            errors[guess.attack] = 1 - found
        return errors
