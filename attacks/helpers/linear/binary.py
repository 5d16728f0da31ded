"""Beliefs in the two classes from a score of class 1."""

import numpy as np

from vflens.errors import KnowledgeError
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, statuses


def binary(view: AdversaryView, score: Array) -> Estimate:
    """``score`` (N,) in [0, 1] as beliefs (N, 2).

    Raises:
        KnowledgeError: the federation has another number of classes.
    """
    if view.n_classes != 2:
        raise KnowledgeError(f"the attack tells two classes apart, the federation has {view.n_classes}")
    return Estimate(view.target, view.rows, np.stack([1 - score, score], axis=1), statuses(len(score)))
