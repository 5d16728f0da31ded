"""Which features of a representation carry the input: Soteria's pruning (Sun et al., 2021)."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from vflens.types import Array


class Pruned(nn.Module):
    """``inner`` (n, d) → (n, w) whose rows lack the ``share`` of their features that moves the input most;
    with ``training_only`` they are whole in predictions.
    """

    def __init__(self, inner: nn.Module, share: float, *, training_only: bool) -> None:
        super().__init__()
        self.inner = inner
        self._share, self._training_only = share, training_only

    def forward(self, x: Tensor) -> Tensor:
        """Pruned features of ``x``; the gradient passes through those that stay."""
        if self._training_only and not self.training:
            return cast(Tensor, self.inner(x))
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            h = self.inner(x)
            moved = movements(h, x)
        return cast(Tensor, h * torch.from_numpy(pruned(np.ones_like(moved), moved, self._share)).to(h))


def movements(h: Tensor, x: Tensor) -> Array:
    """|h_j|/‖∂h_j/∂x‖ of each feature of ``h`` (n, w): how far, to first order, x moves when h_j becomes 0. A
    feature that does not depend on x has 0.

    Soteria maximises ‖x − x'‖ over representations with few entries changed (§4.2, with the same first-order
    approximation). It takes one backward pass for each feature.

    Args:
        h: what a model that treats rows one by one made of ``x``.
        x: (n, d), of which gradients are taken.
    """
    slopes = [torch.autograd.grad(feature.sum(), x, retain_graph=True)[0] for feature in h.T]
    lengths = torch.stack([slope.norm(dim=1) for slope in slopes], dim=1)
    found: Array = torch.where(lengths > 0, h.abs() / lengths, 0.0).detach().cpu().numpy()
    return found


def pruned(h: Array, moved: Array, share: float) -> Array:
    """``h`` (n, w) with 0 for the ⌊share·w⌋ features of each row of largest :func:`movements` ``moved``; of
    equal ones the first.
    """
    count = int(share * h.shape[1])
    chosen = np.argsort(-moved, axis=1, kind="stable")[:, :count]
    result = h.copy()
    np.put_along_axis(result, chosen, 0, axis=1)
    return result
