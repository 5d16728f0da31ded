"""Labels behind codes: the first gradients name the training rows, and these the others (ours).

CAE trains on one code for each class. Before the model has learned anything its beliefs are nearly the same
for every row, so that a row's first gradient is that of its code. Later ones are what the model errs by.
"""

from typing import ClassVar

import numpy as np
import torch

from vflens.attacks.helpers.networks.directions import beliefs, directions, first_gradients, improved
from vflens.attacks.pmc import PassiveModelCompletion
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class FirstGradients(Attack):
    """The belief in a class is 1 + cos over its sum, of a training row's gradient in the first recorded epoch
    to the centre of the class: spherical k-means of all training rows' gradients, which starts at the mean
    directions of the labelled ones' (Basu et al., 2002, Seeded-KMeans). A class without a labelled row has
    the belief 0.

    Of other rows those of :class:`PassiveModelCompletion`, its head learned from all training rows and the
    labels so found.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.GRADIENTS, Knowledge.OWN_FEATURES, Knowledge.KNOWN_LABELS}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    rowwise: ClassVar[bool] = False
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})
    knows: ClassVar[frozenset[str]] = frozenset({"cae"})
    estimates = "labels"

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        if np.isin(view.rows, view.training_rows).all():
            found = named(view, view.rows)
        else:
            guessed = torch.tensor(named(view, view.training_rows).argmax(axis=1))
            found = PassiveModelCompletion().with_head(view, view.training_rows, guessed, rng)
        return Estimate(view.target, view.rows, found, statuses(len(view.rows)))


def named(view: AdversaryView, rows: Array) -> Array:
    """Beliefs (n, k) in the classes of the training ``rows`` (n,), by their first gradients."""
    known, labels = view.known_labels()
    members = labels == np.arange(view.n_classes)[:, None]
    seen = members.any(axis=1)
    start = directions(members[seen].astype(float) @ directions(first_gradients(view, known)))
    centres = improved(directions(first_gradients(view, view.training_rows)), start)
    cosines = np.full((len(rows), view.n_classes), -1.0)
    cosines[:, seen] = directions(first_gradients(view, rows)) @ centres.T
    return beliefs(cosines)
