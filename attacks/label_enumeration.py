"""Labels without a granted one: clusters of gradients, named by simulated gradients (LEA).

Jiang, Fu, Luo and Liu, 2026 (arXiv 2603.03777): of all ways to name the clusters as classes, that is right
under which a simulated model has the most similar first gradients. Similarity adds up over clusters, so that
an assignment finds the best of k! ways in k³ steps.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.networks.directions import (
    beliefs,
    clusters,
    directions,
    first_gradients,
    gradient_directions,
    has_top,
)
from vflens.errors import KnowledgeError
from vflens.numerics.assignment import assigned
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class LabelEnumeration(Attack):
    """The belief in a class is 1 + cos(g_i, centre of its cluster) over its sum; spherical k-means finds the
    centres.

    g_i is the sum of all gradients of row i, or the first. The simulated gradient of class c is that of a
    model that knows nothing yet, 1/k − 1[c].
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimates = "labels"

    epochs: Literal["all", "first"] = Field(
        "all", description="gradients of all recorded epochs, or of the first alone, as in the paper"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: the gradients are not those of logits.
        """
        k = view.n_classes
        first = self.epochs == "first"
        points = (
            directions(first_gradients(view, view.rows)) if first else gradient_directions(view, view.rows)
        )
        if points.shape[1] != k or has_top(view):
            raise KnowledgeError(
                f"gradients of width {points.shape[1]} behind a top model are not those of {k} logits, and "
                "every naming of the classes explains them as well: take gradient_clustering, or similarity "
                "with granted labels"
            )
        values = np.zeros((0, k))
        if len(points):
            values = beliefs(points @ named(clusters(points, k, rng)).T)
        return Estimate(view.target, view.rows, values, statuses(len(values)))


def named(centres: Array) -> Array:
    """The ``centres`` (k, k) in the order of the classes whose simulated gradients they resemble most."""
    simulated = directions(1 / len(centres) - np.eye(len(centres)))
    found: Array = centres[assigned(-simulated @ centres.T)]
    return found
