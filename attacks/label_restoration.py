"""The labels of a batch from the gradient in the bias of the last layer.

Of one row the label is its only negative entry (Zhao et al., 2020, iDLG). Of several they are counted: n_c =
Σ_i p_ic − n·∂ℓ/∂c_c (Wainakh et al., 2022; Geng et al., 2021).
"""

from typing import ClassVar, Literal

import numpy as np

from vflens.attacks.helpers.gradients.rounds import RoundAttack, network_of
from vflens.models.networks.generator import keyed
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Estimate, statuses


class LabelRestoration(RoundAttack):
    """Exact for one row; for a batch, if the mean probability is known well enough. A private bottom model is
    taken as untrained.
    """

    estimates: ClassVar[Literal["features", "labels"]] = "labels"

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (n, k), 1 for each row's label; see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        with keyed(rng):  # draws a private bottom model
            model = network_of(view, view.parameters(view.round))
        labels = self.labels(view, model, view.gradient(view.round), rng)
        return Estimate(view.target, view.rows, np.eye(view.n_classes)[labels], statuses(len(labels)))
