"""White-box model inversion: the input whose embedding comes nearest to the one received (FedAdOb, WMI).

Step 2 of CAFE (Jin et al., 2021). Needs the target's bottom model and its embeddings in prediction.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from attacks._inversion import inverted
from attacks._passports import Guessed, behind
from vfl.attack import Attack
from vfl.networks.architectures import bottom
from vfl.networks.parameters import from_arrays
from vfl.networks.passport import Passport
from vfl.types import Estimate, Knowledge, statuses
from vfl.view import AdversaryView


class WhiteBoxInversion(Attack):
    """min_x ‖G(x) − H‖² + smoothness·TV(x) over the box, G the disclosed bottom model.

    A passport around one of its layers is ignored, guessed (its keys and its autoencoder drawn anew), or its γ and β are
    learned together with x: one pair for all rows, which are then no longer estimated one by one.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.PARAMETERS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )

    steps: int = Field(300, ge=1, le=1_000_000, description="steps of Adam")
    rate: float = Field(0.05, gt=0, allow_inf_nan=False, description="its first learning rate; it falls to 0")
    smoothness: float = Field(0.1, ge=0, allow_inf_nan=False, description="weight of the total variation")
    passport: Literal["none", "random", "joint"] = Field(
        "none", description="γ = 1 and β = 0; a passport drawn at random; or γ and β learned with x"
    )
    layer: str | None = Field(
        None, description="the layer behind the passport; default: the last convolution, else the last linear"
    )
    largest_mean: float = Field(10.0, gt=0, allow_inf_nan=False, description="random: N of the drawn keys")
    sigma: float = Field(1.0, ge=0, allow_inf_nan=False, description="random: σ of the drawn keys")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G(x̂) − H‖. See :meth:`vfl.attack.Attack.reconstruct`."""
        columns = view.metadata()
        model = bottom(view.architecture(), columns).to(torch.float64)
        from_arrays(model, view.target_network())
        model, learned = self._with_passport(model, rng)
        x, residual = inverted(
            model,
            view.embeddings(),
            columns,
            steps=self.steps,
            rate=self.rate,
            smoothness=self.smoothness,
            learned=learned,
        )
        return Estimate(view.target, view.rows, x, statuses(len(x)), {"residual": residual})

    def _with_passport(self, model: nn.Module, rng: np.random.Generator) -> tuple[nn.Module, list[Tensor]]:
        """``model`` as the attacker takes it to be, and what it learns of it."""
        if self.passport == "none":
            return model, []
        if self.passport == "joint":
            model = behind(model, self.layer, Guessed)
            return model, [p for name, p in model.named_parameters() if name.endswith(("scale", "shift"))]
        return behind(model, self.layer, lambda layer: self._drawn(layer, rng)), []

    def _drawn(self, layer: nn.Linear | nn.Conv2d, rng: np.random.Generator) -> Passport:
        drawn = Passport(
            layer,
            largest_mean=self.largest_mean,
            sigma=self.sigma,
            redraw_means=False,
            order="paper",
            rng=rng,
        )
        drawn.rekey(rng)
        return drawn
