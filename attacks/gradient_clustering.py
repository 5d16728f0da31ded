"""Cluster the gradients of training rows by direction: one cluster per class, without any label.

Rows of one class have gradients of nearly one direction (Li et al., 2022). A cluster has no class's name.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.networks.directions import beliefs, clusters, gradient_directions
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase, statuses


class GradientClustering(Attack):
    """The belief in a cluster is 1 + cos(g_i, centre) over its sum; the centres come from spherical k-means.

    g_i is the sum of all gradients of row i.

    Which cluster is which class only the target can say: it scores the best one-to-one naming.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimates = "labels"
    up_to_renaming: ClassVar[bool] = True

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        points = gradient_directions(view, view.rows)
        values = np.zeros((0, view.n_classes))
        if len(points):
            values = beliefs(points @ clusters(points, view.n_classes, rng).T)
        return Estimate(view.target, view.rows, values, statuses(len(values)))
