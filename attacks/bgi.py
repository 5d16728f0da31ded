"""Black-box gradient inversion: the gradient of the shared part alone, behind a shadow of the private one.

FedAdOb's BGI, for clients that keep their bottom models to themselves. The shadow learns from granted rows
and labels through the shared top, as that of ``bmi`` with ``learn = "top"``; then as ``dlg``.
"""

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks._gradient_inversion import Descent, Optimizer
from vflens.attacks._inversion import device_of
from vflens.attacks._learning import Learner
from vflens.attacks._rounds import RoundAttack, network_of
from vflens.errors import KnowledgeError
from vflens.models.networks.generator import keyed
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, Knowledge, Phase


class BlackBoxGradientInversion(Descent, Learner, RoundAttack):
    """min over G' of CE(F(G'(x_a)), y_a), F the shared top; then min over x of the distance of gradients in
    F.
    """

    needs: ClassVar[frozenset[Knowledge]] = RoundAttack.needs | {Knowledge.AUXILIARY, Knowledge.KNOWN_LABELS}
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    exact: ClassVar[bool] = False

    optimizer: Optimizer = Field("adam", description="as of dlg")
    penalty: float = Field(
        1e-3, ge=0, allow_inf_nan=False, description="weight of the shadow's squared parameters"
    )

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d); extra "distance" (n,); see :meth:`Descent.of_round`.

        Raises:
            KnowledgeError: the whole model is shared, or no label of a granted row is known.
        """
        shared = view.parameters(view.round)
        if not all(name.startswith("top.") for name in shared):
            raise KnowledgeError(f"{view.target!r} shares its bottom model too: use dlg, which knows it")
        with keyed(rng):
            model = network_of(view, shared)
        self._learn(view, model, rng)
        gradient = view.gradient(view.round)
        labels = self.labels(view, model, gradient, rng)
        return self.of_round(view, model, gradient, labels, rng)

    def _learn(self, view: ServerView, model: nn.Module, rng: np.random.Generator) -> None:
        """Fit the bottom of ``model`` to granted rows and labels."""
        (rows, features), (labelled, classes) = view.auxiliary(), view.known_labels()
        _, places, labels = np.intersect1d(rows, labelled, return_indices=True)
        if not len(places):
            raise KnowledgeError(f"{view.target!r} granted no label of a granted row: bgi learns from both")
        bottom, device = model.get_submodule("bottom"), device_of(model)
        x = torch.tensor(features[places], device=device)
        y = torch.tensor(classes[labels], device=device)

        def loss(batch: Array) -> Tensor:
            penalty: Tensor = sum(((p**2).sum() for p in bottom.parameters()), start=x.new_zeros(()))
            return cross_entropy(model(x[batch]), y[batch]) + self.penalty * penalty

        model.eval()
        self.fit(bottom, loss, len(places), rng, view.progress)
