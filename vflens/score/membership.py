"""Scoring of candidates: are training rows told from others, and named as their own client's?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

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


class SourceScoring(ScoringService):
    """The share of a client's training rows that are named as its own, and of its rows that nobody trained
    on: the difference is what training betrays, the rest tells its people from others'.

    Naming one client always is right at it alone: a guess is right in 1/K, on average over K clients.

    Args:
        members: which candidates are training rows, bool (n,).
        classes: of the candidates (n,).
        clients: the names of all, sorted: an estimate (n, K) has a belief in each.
        service: see :class:`vflens.score.service.ScoringService`.
    """

    def __init__(
        self, *, members: Array, classes: Array, clients: Sequence[str], party: str, **service: Any
    ) -> None:
        super().__init__(width=len(clients), party=party, **service)
        self._members, self._own, self._count = members, clients.index(party), len(clients)
        self._others = {f"{c:g}": (classes == c) & ~members for c in np.unique(classes)}

    def keep_errors(self, submission: Submission) -> dict[str, float]:
        """See :meth:`vflens.score.service.ScoringService.keep_errors`; errors are shares named wrongly."""
        add, members = self.adding(submission), self._members
        add(Name.BLIND_SOURCE_RIGHT, 1 / self._count)
        errors = {}
        for guess in submission.guesses:
            place = np.argmax(guess.values, axis=1)
            named = place == self._own
            for c, rows in self._others.items():
                counts = np.bincount(place[rows], minlength=self._count).tolist()
                add(Name.SOURCE_NAMED, sum(counts), attack=guess.attack, detail=c, values=counts)
            right = float(named[members].mean())
            add(Name.SOURCE_RIGHT, right, attack=guess.attack)
            add(Name.SOURCE_RIGHT_OTHERS, float(named[~members].mean()), attack=guess.attack)
            errors[guess.attack] = 1 - right
        return errors
