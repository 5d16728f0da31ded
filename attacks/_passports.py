"""An attacker's model of a passport without its keys."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from vflens.errors import KnowledgeError
from vflens.models.networks.passport import open_layers, passport_place, weighted, with_passport

Layer = nn.Linear | nn.Conv2d


class Guessed(nn.Module):
    """γ ⊙ (W ∗ x) + β with γ, β (outputs,) of the attacker's choice; they begin at 1 and the layer's own
    bias, no passport at all.
    """

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        ones = torch.ones(layer.weight.shape[0], dtype=layer.weight.dtype)
        self.scale = nn.Parameter(ones)
        self.shift = nn.Parameter(
            torch.zeros_like(ones) if layer.bias is None else layer.bias.detach().clone()
        )

    def take(self, scale: Tensor, shift: Tensor) -> None:
        """Set γ and β."""
        with torch.no_grad():
            self.scale.copy_(scale), self.shift.copy_(shift)

    def forward(self, x: Tensor) -> Tensor:
        """As :meth:`vflens.models.networks.passport.Passport.forward`."""
        shape = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
        return self.scale.reshape(shape) * weighted(self.layer, x) + self.shift.reshape(shape)


def behind(model: nn.Module, layer: str | None, make: Callable[[Layer], nn.Module]) -> nn.Module:
    """``model`` with the layer called ``layer`` (default: where FedAdOb puts a bottom's passport) behind
    ``make(layer)``.

    Raises:
        KnowledgeError: the model has no such layer.
    """
    place = passport_place(model, at_top=False) if layer is None else layer
    layers = open_layers(model)
    if place is None or place not in layers:
        raise KnowledgeError(
            f"layer {place!r} is no linear or convolution layer of the target's model: name one of "
            f"{list(layers)}"
        )
    return with_passport(model, place, make(layers[place]))
