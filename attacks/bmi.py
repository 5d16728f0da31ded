"""Black-box model inversion: a shadow of the bottom model, learned from granted rows, is inverted.

He et al., 2019; FedAdOb's BMI, called MI in its tables. The rows' embeddings are those of the last epoch of
training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.networks.embeddings import EmbeddingsAttack
from vflens.attacks.helpers.networks.exchanges import keyless
from vflens.attacks.helpers.networks.inversion import Inversion, device_of, target_model
from vflens.attacks.helpers.networks.learning import Learner, Loss
from vflens.attacks.helpers.networks.own_top import own_top
from vflens.attacks.helpers.networks.passports import channels
from vflens.errors import KnowledgeError
from vflens.models.networks.generator import keyed
from vflens.plugins.declared import Declared
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class BlackBoxInversion(EmbeddingsAttack, Inversion, Learner):
    """The shadow G' learns from the granted rows x_a, and is inverted from those of nearest embedding.

    ``aligned``: min ‖G'(x_a) − H_a‖², H_a their embeddings in training. ``top``: min CE(F(G'(x_a)), y_a)
    through the adversary's own top model F as it gives predictions, with its own labels y_a (FedAdOb's
    form): H_a is not needed.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.AUXILIARY, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    sent_in: ClassVar[Literal["first", "last"]] = "last"  # the granted pairs are those of the last parameters

    learn: Literal["aligned", "top"] = Field(
        "aligned",
        description="the granted rows' embeddings in training; or their labels, through the own top",
    )
    passport: Literal["none", "moments"] = Field(
        "none",
        description="aligned: embeddings as they are; or those of each exchange without the scale and shift "
        "of a channel",
    )
    penalty: float = Field(
        1e-8, ge=0, allow_inf_nan=False, description="weight of the shadow's squared parameters"
    )

    @model_validator(mode="after")
    def _standardises_what_is_fitted(self) -> BlackBoxInversion:
        if self.passport == "moments" and self.learn == "top":
            raise ValueError(
                'passport = "moments" changes the embeddings that learn = "aligned" fits: leave one of them '
                "out"
            )
        return self

    def declared(self) -> Declared:
        """With ``top`` also the own labels and model."""
        found = super().declared()
        own = {Knowledge.OWN_LABELS, Knowledge.OWN_FEATURES} if self.learn == "top" else set()
        return replace(found, needs=found.needs | own)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G'(x̂) − H‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        if not isinstance(view, AdversaryView) and (self.learn, self.passport) != ("aligned", "none"):
            raise KnowledgeError(
                "a server has neither a top model nor labels of its own, nor exchanges of embeddings: leave "
                "learn and passport out"
            )
        rows, features = view.auxiliary()
        with keyed(rng):
            shadow = target_model(view)
        h, granted = view.embeddings(), None
        if self.passport == "moments":
            h, granted = keyless(view, rows, channels(shadow))
        elif self.learn == "aligned":
            granted = view.embeddings(rows, Phase.TRAIN)
        x = torch.tensor(features, device=device_of(shadow))
        fits = _labelled(view, rows, shadow, x) if granted is None else _aligned(granted, shadow, x)

        def loss(batch: Array) -> Tensor:
            penalty: Tensor = sum(((p**2).sum() for p in shadow.parameters()), start=x.new_zeros(()))
            return fits(batch) + self.penalty * penalty

        self.fit(shadow, loss, len(rows), rng, view.progress)
        found, residual = self.ends(h, view.metadata(), shadow, features, progress=view.progress)
        return Estimate(view.target, view.rows, found, statuses(len(found)), extras={"residual": residual})


def _aligned(granted: Array, shadow: nn.Module, x: Tensor) -> Loss:
    h = torch.tensor(granted, device=x.device)
    return lambda batch: ((shadow(x[batch]) - h[batch]) ** 2).sum(dim=1).mean()


def _labelled(view: AdversaryView, rows: Array, shadow: nn.Module, x: Tensor) -> Loss:
    logits, y = own_top(view, rows), torch.tensor(view.own("labels", rows), device=x.device)
    return lambda batch: cross_entropy(logits(shadow(x[batch]), batch), y[batch])
