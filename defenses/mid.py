"""MID: a noisy layer in the embedding that is penalised for what it tells (Zou et al., 2023).

The variational information bottleneck (Alemi et al., 2017, equation 17). Split networks only.
"""

from copy import deepcopy
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from vflens.errors import ConfigError
from vflens.models.networks.layers import BesideModule
from vflens.plugins.defense import Context, Defense
from vflens.types import Role

_SHIFT = 5.0  # Alemi et al., §4.1: a new layer adds little noise


class MID(Defense):
    """z = μ(h) + s(h) ∘ ξ, ξ ~ N(0, I), and λ·KL(N(μ, s²) ‖ N(0, I)) in the loss.

    At a passive party h is its embedding and z leaves; at the active party h is what its top model takes. μ
    is linear, s softplus of a linear layer; they never leave. Predictions have z = μ(h), so that they stay
    the same.
    """

    unclaimed: ClassVar[str] = "the KL is what training makes of it, and predictions have no noise"

    strength: float = Field(0.01, gt=0, le=1e6, description="λ, the weight of KL in the loss")

    def wrap_model(self, m: nn.Module, ctx: Context) -> nn.Module:
        """``m`` with a noisy layer after it, at the active party before it.

        Raises:
            ConfigError: the active party's model does not begin with a linear layer or an image.
        """
        first = ctx.owner.role is Role.ACTIVE
        width = _input_width(m, ctx.owner.name) if first else _output_width(m, ctx)
        like = next(m.parameters())
        layer = Bottleneck(width, ctx.position, ctx.stream()).to(like)
        return nn.Sequential(layer, m) if first else nn.Sequential(m, layer)

    def penalty(self, m: nn.Module, h: Tensor, private: Tensor, ctx: Context) -> Tensor:
        """λ times the mean KL of the batch that went through ``m`` last, in nats."""
        own = (p for p in m.modules() if isinstance(p, Bottleneck) and p.position == ctx.position)
        divergence = next(own).divergence
        assert divergence is not None  # the batch was computed in training
        return self.strength * divergence


class Bottleneck(nn.Module):
    """A draw from N(μ(h), s(h)²) for h (n, w), in evaluation μ(h); keeps the KL of the last batch."""

    divergence: Tensor | None = None

    def __init__(self, width: int, position: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.position = position
        reach = width**-0.5
        weight = rng.uniform(-reach, reach, (2 * width, width))
        self.weight = nn.Parameter(torch.from_numpy(weight))
        self.bias = nn.Parameter(torch.zeros(2 * width, dtype=torch.float64))

    def __getstate__(self) -> dict[str, Any]:
        """Without the last batch: a tensor with a past cannot be copied."""
        return {**self.__dict__, "divergence": None}

    def forward(self, h: Tensor) -> Tensor:
        """Z (n, w)."""
        mean, spread = functional.linear(h, self.weight, self.bias).chunk(2, dim=1)
        if not self.training:
            return mean
        std = functional.softplus(spread - _SHIFT)
        self.divergence = (0.5 * (mean.square() + std.square() - 1) - std.log()).sum(dim=1).mean()
        return mean + std * torch.randn_like(std)


def _input_width(top: nn.Module, party: str) -> int:
    """Numbers per row that the top model takes, as its first layer says."""
    kinds = (nn.Linear, nn.Unflatten, BesideModule, nn.Conv2d)
    first = next((layer for layer in top.modules() if isinstance(layer, kinds)), None)
    if isinstance(first, nn.Linear):
        return first.in_features
    if isinstance(first, nn.Unflatten):
        return prod(first.unflattened_size)
    raise ConfigError(
        f"mid at {party!r}: its top model begins with no linear layer and no image, set "
        "model.trainable_top = true, cut elsewhere, or move mid to the passive parties"
    )


def _output_width(bottom: nn.Module, ctx: Context) -> int:
    """Numbers per row of the embedding: that of a row of zeros, in a copy."""
    assert ctx.owner.columns is not None  # a data party has them
    tried = deepcopy(bottom).eval()
    for layer in tried.modules():
        rekey = getattr(layer, "rekey", None)
        if callable(rekey):
            rekey(np.random.default_rng(0))
    with torch.no_grad():
        row = torch.zeros(1, ctx.owner.columns.shape[1]).to(next(tried.parameters()))
        width: int = tried(row).shape[1]
    return width
