"""The active party's scoring service: guesses of labels against its own labels."""

import math
from functools import partial
from typing import Any

import numpy as np

from vflens.numerics.measures.ranking import auc
from vflens.plugins.attack import up_to_renaming
from vflens.protocol.acts import Guess, Submission
from vflens.score.service import ScoringService
from vflens.storage.metrics import Name
from vflens.types import Array


class LabelScoring(ScoringService):
    """Share of right labels and AUC of a guess, and the share of the most frequent class.

    The classes of an attack that finds them without names are clusters: each is named as a class, one to one,
    so that as many labels as possible are right.

    Args:
        labels: int64 (N,) of all aligned rows.
        n_classes: k; a guess has a number for each class.
        training: rows whose most frequent class is the blind guess.
        service: see :class:`vflens.score.service.ScoringService`.
    """

    def __init__(self, *, labels: Array, n_classes: int, training: Array, **service: Any) -> None:
        super().__init__(width=n_classes, **service)
        self._labels = labels
        self._without_auc: set[str] = set()
        self._likeliest = int(np.bincount(labels[training]).argmax())

    def keep_errors(self, submission: Submission) -> dict[str, float]:
        """See :meth:`vflens.score.service.ScoringService.keep_errors`; errors are shares of wrong labels."""
        blind = float((self._labels[submission.rows] == self._likeliest).mean())
        self.adding(submission)(Name.BLIND_LABEL_ACCURACY, blind)
        return {guess.attack: self._error(guess, submission) for guess in submission.guesses}

    def _error(self, guess: Guess, submission: Submission) -> float:
        truth = self._labels[submission.rows]
        values = named(guess.values, truth) if up_to_renaming(guess.attack) else guess.values
        accuracy = float((values.argmax(axis=1) == truth).mean())
        add = partial(self.adding(submission), attack=guess.attack)
        add(Name.LABEL_ACCURACY, accuracy)
        ranked = auc(values, truth)
        add(Name.LABEL_AUC, ranked)
        if math.isnan(ranked) and guess.attack not in self._without_auc:
            self._without_auc.add(guess.attack)  # said once: repetitions would fill the disk
            self._log.warning("label_auc is undefined: the scored rows are of one class", attack=guess.attack)
        return 1 - accuracy


def named(values: Array, truth: Array) -> Array:
    """``values`` (n, k) with the columns in the order in which most rows have their class ``truth`` (n,)."""
    from scipy.optimize import linear_sum_assignment  # slow to load, for few attacks

    pairs = np.zeros((values.shape[1],) * 2, np.int64)
    np.add.at(pairs, (truth, values.argmax(axis=1)), 1)
    found: Array = values[:, linear_sum_assignment(pairs, maximize=True)[1]]
    return found
