"""Whose moments a batch norm is supposed to have used when an observed gradient was taken."""

from copy import deepcopy
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from vflens.models.networks.layers import BatchNormModule

#: ``batch``: those of the batch itself, as in training. ``running``: those that travel with the parameters.
Moments: TypeAlias = Literal["batch", "running"]


def without_state(model: nn.Module, moments: Moments) -> nn.Module:
    """A copy of ``model`` that computes as in predictions, so without dropout, but for its batch norms: under
    ``batch`` they use the moments of what they are given. It keeps the names of the parameters.
    """
    copied = deepcopy(model).eval().requires_grad_(False)
    if moments == "batch":
        for name, norm in [(n, m) for n, m in copied.named_modules() if isinstance(m, BatchNormModule)]:
            parent, _, child = name.rpartition(".")
            setattr(copied.get_submodule(parent), child, _OfBatch(norm))
    return copied


class _OfBatch(nn.Module):
    """A batch norm in training that writes down no moments, so that many batches pass it side by side."""

    def __init__(self, norm: BatchNormModule) -> None:
        super().__init__()
        self.weight, self.bias, self._eps = norm.weight, norm.bias, norm.eps
        self._running = norm.running_mean, norm.running_var

    def forward(self, x: Tensor) -> Tensor:
        """What :meth:`vflens.models.networks.layers.BatchNormModule.forward` gives in training."""
        if x[:, 0].numel() == 1:  # one number has no variance
            return functional.batch_norm(x, *self._running, self.weight, self.bias, eps=self._eps)
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), keepdim=True, correction=0)
        scale, shift = (p.reshape(1, -1, 1, 1) for p in (self.weight, self.bias))
        normal: Tensor = (x - mean) * torch.rsqrt(variance + self._eps) * scale + shift
        return normal
