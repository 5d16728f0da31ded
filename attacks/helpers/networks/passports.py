"""An attacker's model of a passport without its keys."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from vflens.attacks.helpers.networks.inversion import device_of
from vflens.errors import KnowledgeError
from vflens.models.networks.passport import (
    Order,
    PassportLayer,
    open_layers,
    passport_place,
    weighted,
    with_passport,
)

Layer = nn.Linear | nn.Conv2d


class GuessedPassport(nn.Module):
    """γ ⊙ (W ∗ x) + β with γ, β (outputs,) of the attacker's choice; they begin at 1 and the layer's own
    bias, no passport at all.
    """

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        ones = torch.ones_like(layer.weight.detach().flatten(1)[:, 0])
        self.scale, self.shift = nn.Parameter(ones), nn.Parameter(self.own_shift())

    def own_shift(self) -> Tensor:
        """The layer's own bias (outputs,)."""
        bias = self.layer.bias
        first = self.layer.weight.detach().flatten(1)[:, 0]
        return torch.zeros_like(first) if bias is None else bias.detach().clone()

    def take(self, scale: Tensor, shift: Tensor) -> None:
        """Set γ and β."""
        with torch.no_grad():
            self.scale.copy_(scale), self.shift.copy_(shift)

    def forward(self, x: Tensor) -> Tensor:
        """What :meth:`vflens.models.networks.passport.PassportLayer.forward` gives."""
        shape = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
        return self.scale.reshape(shape) * weighted(self.layer, x) + self.shift.reshape(shape)


def drawn(
    layer: Layer, largest_mean: float, sigma: float, order: Order, rng: np.random.Generator
) -> PassportLayer:
    """A passport around ``layer`` with keys and an autoencoder of the attacker's own."""
    passport = PassportLayer(
        layer, largest_mean=largest_mean, sigma=sigma, redraw_means=False, order=order, rng=rng
    )
    passport.rekey(rng)
    return passport.to(device_of(layer))


def behind(model: nn.Module, layer: str | None, make: Callable[[Layer], nn.Module]) -> nn.Module:
    """``model`` with the layer called ``layer`` (default: where FedAdOb puts a bottom's passport) behind
    ``make(layer)``.

    Raises:
        KnowledgeError: the model has no such layer.
    """
    place, found = open_layer(model, layer)
    return with_passport(model, place, make(found))


def channels(model: nn.Module, layer: str | None = None) -> int:
    """The outputs of that layer: a γ and a β each.

    Raises:
        KnowledgeError: the model has no such layer.
    """
    return open_layer(model, layer)[1].weight.shape[0]


def open_layer(model: nn.Module, layer: str | None) -> tuple[str, Layer]:
    """Name and layer of ``layer``, by default of that where FedAdOb puts a bottom's passport.

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
    return place, layers[place]
