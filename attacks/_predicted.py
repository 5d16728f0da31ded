"""Known rows that were predicted: their columns and what was released of them."""

from typing import NamedTuple

import numpy as np

from vflens.plugins.arrivals import latest
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Point


class Predicted(NamedTuple):
    """Rows with all unknown columns ``x`` (m, d), their released ``scores`` (m, k) and ``own`` logits (m, k):
    those of the ``granted`` rows, by their ``places`` among these, that got a prediction.
    """

    x: Array
    scores: Array
    own: Array
    places: Array
    granted: int


def predicted(view: AdversaryView) -> Predicted:
    """The rows that every passive party granted, as far as the adversary received their scores.

    Raises:
        KnowledgeError: a party granted none.
    """
    rows, x = view.common_rows()
    scores, seen = arrived(view, rows)
    return Predicted(x[seen], scores[seen], view.own_logits(rows[seen]), np.flatnonzero(seen), len(rows))


def arrived(view: AdversaryView, rows: Array) -> tuple[Array, Array]:
    """The last scores (n, k) of ``rows``, of a number predictions (n, 1), and which arrived, bool (n,)."""
    found = ((r.rows, r.tensor("scores")) for r in view.received(Point.SCORES))
    scores, seen = latest(found, rows)
    return (scores if scores.size else np.zeros((len(rows), view.n_classes))), seen
