"""Known rows that were predicted: their columns and what was released of them."""

from typing import NamedTuple

import numpy as np

from vflens.plugins.arrivals import latest
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Point


class Predicted(NamedTuple):
    """Those of the ``granted`` rows, by their ``places``, that were predicted: all unknown columns ``x``
    (m, d), released ``scores`` and ``own`` logits (m, k).
    """

    granted: int
    places: Array
    x: Array
    scores: Array
    own: Array


def predicted(view: AdversaryView) -> Predicted:
    """Those of the rows that every passive party granted.

    Raises:
        KnowledgeError: a party granted none.
    """
    granted, x = view.common_rows(view.widths())
    rows = view.again(granted)
    scores, seen = arrived(view, rows)
    return Predicted(len(rows), np.flatnonzero(seen), x[seen], scores[seen], view.own_logits(rows[seen]))


def arrived(view: AdversaryView, rows: Array) -> tuple[Array, Array]:
    """The last scores (n, k) of ``rows``, of a number predictions (n, 1), and which arrived, bool (n,)."""
    scores, seen = latest(((r.rows, r.tensor("scores")) for r in view.received(Point.SCORES)), rows)
    return (scores if scores.size else np.zeros((len(rows), view.n_classes))), seen
