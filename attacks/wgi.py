"""White-box gradient inversion: each row from the granted gradient of its own loss (FedAdOb, WGI).

What a round shows without a grant is the gradient of a batch, in shared parameters: see ``dlg``.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from vflens.attacks.helpers.gradients.granted import GradientsAttack, client_network, restored
from vflens.attacks.helpers.gradients.inversion_of_rounds import Descent
from vflens.attacks.helpers.networks.inversion import device_of
from vflens.attacks.helpers.networks.passports import drawn, open_layer
from vflens.models.networks.passport import with_passport
from vflens.plugins.declared import Stated
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate


class WhiteBoxGradientInversion(Descent, GradientsAttack):
    """A passport in the bottom model is ignored, or guessed: its keys and its autoencoder are drawn anew."""

    exact: ClassVar[bool] = False
    stated: ClassVar[Stated | None] = Stated(key_guess={"passport": "random"})

    passport: Literal["none", "random"] = Field("none", description="ignored; or a passport drawn at random")
    layer: str | None = Field(
        None,
        coerce_numbers_to_str=True,
        description="the layer behind the passport; default: the last convolution, else the last linear",
    )
    largest_mean: float = Field(10.0, gt=0, allow_inf_nan=False, description="random: N of the drawn keys")
    sigma: float = Field(1.0, ge=0, allow_inf_nan=False, description="random: σ of the drawn keys")

    @model_validator(mode="after")
    def _settings_are_read(self) -> Self:
        for name in ("layer", "largest_mean", "sigma"):
            value = getattr(self, name)
            if self.passport == "none" and value != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name} = {value!r}: passport = 'none' does not read it, leave it out, or set "
                    "passport = 'random'"
                )
        return self

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "distance" (N,): of the gradients, in the unit of what was minimised."""
        model, gradients = client_network(view), view.gradients()
        labels = restored(model, gradients)
        if self.passport == "random":
            gradients = self._behind_drawn(view, model, gradients, rng)
        return self.of_rows(view, model, gradients, labels, rng)

    def _behind_drawn(
        self, view: ServerView, model: nn.Module, gradients: Mapping[str, Array], rng: np.random.Generator
    ) -> dict[str, Array]:
        """``gradients`` as a passport around the layer names them, which is put there: its bias has none."""
        view.architecture()  # softmax regression has no bottom model
        bottom = model.get_submodule("bottom")
        place, layer = open_layer(bottom, self.layer)
        passport = drawn(layer, self.largest_mean, self.sigma, "paper", rng)
        with_passport(bottom, place, passport)
        with torch.no_grad():  # keys are drawn at the first input
            model(torch.zeros((1, len(view.metadata())), dtype=torch.float64, device=device_of(model)))
        weight, bias = f"bottom.{place}.weight", f"bottom.{place}.bias"
        kept = {n: g for n, g in gradients.items() if n not in (weight, bias)}
        return {**kept, f"bottom.{place}.layer.weight": gradients[weight]}
