"""The passport layer of FedAdOb: a layer whose scale and shift follow from secret keys, redrawn each batch.

u = W ∗ x, γ = Avg(D(E(W ∗ s^γ))), β = Avg(D(E(W ∗ s^β))), out = γ ⊙ u + β, one γ and β per output channel.
W is reached by three paths: through u, γ and β (``docs/defenses/passport.md``). The layer's own bias
has β's place: it is set to 0 and stays there.

The paper has no normalisation in this layer, the authors' code has one: out = γ ⊙ N(u) + β behind a
convolution, N a batch norm without scale and shift, and out = tanh(γ) ⊙ u + tanh(β) behind a linear layer
(FATE, ``fedpass/_passport_block.py``).
"""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from vflens.errors import ConfigError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.layers import BatchNormModule
from vflens.types import ColumnInfo

Order = Literal["paper", "pool_first"]
Keys = Literal["redrawn", "fixed"]
Normalise = Literal["none", "authors"]


class PassportLayer(nn.Module):
    """``layer`` (linear or convolution) behind a passport.

    Keys have the shape of one input of the layer: s_j ~ N(μ_j, σ²), one μ_j ~ U(−N, 0) per input channel.
    """

    def __init__(
        self,
        layer: nn.Linear | nn.Conv2d,
        *,
        largest_mean: float,
        sigma: float,
        redraw_means: bool,
        order: Order,
        rng: np.random.Generator,
        keys: Keys = "redrawn",
        normalise: Normalise = "none",
    ) -> None:
        super().__init__()
        self.layer = layer
        if layer.bias is not None:
            with torch.no_grad():
                layer.bias.zero_()
            layer.bias.requires_grad_(False)
        outputs, self._inputs = layer.weight.shape[0], layer.weight.shape[1]
        hidden = max(1, outputs // 4)
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        self.encoder = _linear(outputs, hidden, layer.weight.dtype, generator)
        self.decoder = _linear(hidden, outputs, layer.weight.dtype, generator)
        self._largest_mean, self._sigma = largest_mean, sigma
        self._redraw_means, self._order = redraw_means, order
        self._means = self._drawn_means(rng)
        self._rng: np.random.Generator | None = None
        self._keys: tuple[Tensor, Tensor] | None = None
        self._fixed = keys == "fixed"
        if self._fixed:
            self._rng = rng
        self.norm = _normalising(layer) if normalise == "authors" else nn.Identity()
        self._bounded = normalise == "authors" and isinstance(layer, nn.Linear)

    def rekey(self, rng: np.random.Generator) -> None:
        """New keys from ``rng``, drawn when the next input shows their shape; fixed keys stay."""
        if not self._fixed:
            self._rng, self._keys = rng, None

    def forward(self, x: Tensor) -> Tensor:
        """γ ⊙ N(W ∗ x) + β; N is the identity unless the layer normalises.

        Raises:
            RuntimeError: before the first :meth:`rekey`.
        """
        # The keys go through the layer with the batch: three calls would cost three times a call's overhead.
        both = weighted(self.layer, torch.cat([x, torch.stack(self.keys(x))]))
        z, keys = torch.split_with_sizes(both, [len(x), 2])
        scale, shift = self._passport(keys)
        shape = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
        out: Tensor = scale.reshape(shape) * self.norm(z)
        return out.add_(shift.reshape(shape))

    def keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(s^γ, s^β), each of the shape of one row of ``x``; the same until the next :meth:`rekey`.

        Raises:
            RuntimeError: before the first :meth:`rekey`.
        """
        if self._keys is None:
            if self._rng is None:
                raise RuntimeError("a passport layer was used before it had keys: call rekey first")
            if self._redraw_means:
                self._means = self._drawn_means(self._rng)
            gamma, beta = (self._key(means, x, self._rng) for means in self._means)
            self._keys = gamma, beta
        return self._keys

    def folded(self) -> nn.Linear | nn.Conv2d:
        """A layer without a passport that predicts as this one under its present keys: γ in its weights, β
        its bias.

        Raises:
            RuntimeError: before the first input after a :meth:`rekey`.
        """
        if self._keys is None:
            raise RuntimeError("a passport's keys have the shape of its input: give it one first")
        layer = deepcopy(self.layer)
        with torch.no_grad():
            scale, shift = self._passport(weighted(layer, torch.stack(self._keys)))
            if isinstance(self.norm, BatchNormModule):
                scale = scale / (self.norm.running_var + self.norm.eps).sqrt()
                shift = shift - scale * self.norm.running_mean
            layer.weight.mul_(scale.reshape(-1, *[1] * (layer.weight.dim() - 1)))
            layer.bias = nn.Parameter(shift)
        return layer

    def _drawn_means(self, rng: np.random.Generator) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return rng.uniform(-self._largest_mean, 0, (2, self._inputs))

    def _key(
        self, means: np.ndarray[tuple[int, ...], np.dtype[np.float64]], x: Tensor, rng: np.random.Generator
    ) -> Tensor:
        places = means.reshape(-1, *[1] * (x.dim() - 2))
        key = places + self._sigma * rng.standard_normal(tuple(x.shape[1:]))
        return torch.from_numpy(key).to(x)

    def _passport(self, z: Tensor) -> Tensor:
        """Avg(D(E(z))) (m, outputs) of m weighted keys W ∗ s, its tanh where the layer is bounded;
        ``pool_first`` averages over the places before the autoencoder.
        """
        places = z.flatten(2).transpose(1, 2) if z.dim() == 4 else z.unsqueeze(1)  # (m, places, outputs)
        if self._order == "pool_first":
            places = places.mean(dim=1, keepdim=True)
        hidden = functional.leaky_relu(self.encoder(places))
        average = cast(Tensor, self.decoder(hidden)).mean(dim=1)
        return average.tanh() if self._bounded else average


def weighted(layer: nn.Linear | nn.Conv2d, x: Tensor) -> Tensor:
    """W ∗ x: ``layer`` without its bias."""
    if isinstance(layer, nn.Linear):
        return functional.linear(x, layer.weight)
    return functional.conv2d(x, layer.weight, None, layer.stride, layer.padding, layer.dilation, layer.groups)


def with_passport(module: nn.Module, name: str, passport: nn.Module) -> nn.Module:
    """``module`` with the layer called ``name`` behind ``passport``; the layer's parameters stay the same
    objects.
    """
    if not name:
        return passport
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, passport)
    return module


def with_folded(module: nn.Module) -> nn.Module:
    """``module`` with every passport replaced by :meth:`PassportLayer.folded`."""
    for name, passport in [(n, m) for n, m in module.named_modules() if isinstance(m, PassportLayer)]:
        with_passport(module, name, passport.folded())
    return module


def without_norm(module: nn.Module, name: str) -> None:
    """Take the batch norm directly behind the layer called ``name``, if there is one, out of ``module``.

    A passport's γ and β stand in its place (FedAdOb, §6.1: only baselines have it). Who holds the removed
    batch norm finds the identity: scale 1, shift 0, mean 0, variance 1.
    """
    parent, _, child = name.rpartition(".")
    siblings = module.get_submodule(parent)
    following = dict(pairwise(child for child, _ in siblings.named_children())).get(child)
    norm = None if following is None else siblings.get_submodule(following)
    if following is not None and isinstance(norm, BatchNormModule):
        norm.running_var.fill_(1 - norm.eps)
        setattr(siblings, following, nn.Identity())


def open_layers(module: nn.Module) -> dict[str, nn.Linear | nn.Conv2d]:
    """The linear and convolution layers by name, from bottom to top; without those of a passport."""
    closed = tuple(f"{n}." if n else "" for n, m in module.named_modules() if isinstance(m, PassportLayer))
    return {
        n: m
        for n, m in module.named_modules()
        if isinstance(m, nn.Linear | nn.Conv2d) and not n.startswith(closed)
    }


def passport_place(module: nn.Module, *, at_top: bool) -> str | None:
    """The layer that FedAdOb's appendix A.4.1 protects: the top's first linear one; the bottom's last
    convolution, else linear.

    Of those that have no passport yet; None if there is none.
    """
    layers = open_layers(module)
    linear = [n for n, m in layers.items() if isinstance(m, nn.Linear)]
    if at_top:
        return linear[0] if linear else None
    convolutions = [n for n in layers if n not in linear]
    places = convolutions or linear
    return places[-1] if places else None


def key_means(network: SplitNetwork, columns: Sequence[ColumnInfo], layer: str | None) -> tuple[int, bool]:
    """How many means a key of a bottom model's passport has, and whether its layer reads the columns
    themselves.

    Args:
        network: the split network.
        columns: of the party.
        layer: the layer's name; None: the default of :func:`passport_place`.

    Raises:
        ConfigError: the architecture does not fit the columns, or has no such layer.
    """
    with torch.device("meta"):
        layers = open_layers(module := bottom(network, columns))
    place = layer or passport_place(module, at_top=False)
    if place not in layers:
        raise ConfigError(
            f"passport layer {place!r} is none of the bottom model's: name one of {list(layers)}"
        )
    return layers[place].weight.shape[1], place == next(iter(layers))


def _normalising(layer: nn.Linear | nn.Conv2d) -> nn.Module:
    """What the authors' code has between ``layer`` and γ: of a convolution's channels a batch norm, whose
    own scale and shift stay 1 and 0.
    """
    if isinstance(layer, nn.Linear):
        return nn.Identity()
    return BatchNormModule(layer.out_channels).to(layer.weight).requires_grad_(False)


def _linear(inputs: int, outputs: int, dtype: torch.dtype, generator: torch.Generator) -> nn.Linear:
    """A linear layer without bias, uniform within ±1/√inputs."""
    make: Any = nn.utils.skip_init  # torch leaves it untyped
    layer: nn.Linear = make(nn.Linear, inputs, outputs, bias=False, dtype=dtype)
    with torch.no_grad():
        layer.weight.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
    return layer
