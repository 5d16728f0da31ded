"""Give each row the class of the labelled row whose gradient, or embedding, has the most similar direction.

One label of each class is enough. Training rows have gradients; of prediction rows the party has its own
embeddings only.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.networks.directions import beliefs, clusters, directions, gradient_directions
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class Similarity(Attack):
    """The belief in a class is 1 + cos over its sum, to the first labelled rows of the class.

    Embeddings are those of the party's own trained bottom model, less their mean over training rows. A class
    without a labelled row has the belief 0.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.GRADIENTS, Knowledge.OWN_FEATURES, Knowledge.KNOWN_LABELS}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    rowwise: ClassVar[bool] = False
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})
    estimates = "labels"

    labels: int = Field(1, ge=1, description="labelled rows of each class that are used, of those granted")
    clustered: bool = Field(
        False, description="compare with the centres of clusters, which those rows name, instead of with them"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        rows, labels = view.known_labels()
        first = np.concatenate([np.flatnonzero(labels == c)[: self.labels] for c in range(view.n_classes)])
        trained = bool(np.isin(view.rows, view.training_rows).all())
        known, points = (_points(view, r, trained=trained) for r in (rows[first], view.rows))
        if self.clustered and len(points):
            centres = clusters(np.concatenate([known, points]), view.n_classes, rng)
            known = centres[(known @ centres.T).argmax(axis=1)]
        others = labels[first] != np.arange(view.n_classes)[:, None]
        cosines = np.where(others, -1.0, (points @ known.T)[:, None]).max(axis=2)
        return Estimate(view.target, view.rows, beliefs(cosines), statuses(len(points)))


def _points(view: AdversaryView, rows: Array, *, trained: bool) -> Array:
    """Directions (n, w) of the gradients of ``rows``, which ``trained`` needs to be training rows, else of
    embeddings.
    """
    if trained:
        return gradient_directions(view, rows)
    centre = view.own("embeddings", view.training_rows).mean(axis=0)
    return directions(view.own("embeddings", rows) - centre)
