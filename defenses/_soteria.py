"""Which features of a representation carry the input: Soteria's pruning (Sun et al., 2021)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from vflens.types import Array


def movements(model: nn.Module, x: Tensor) -> Array:
    """|h_j|/‖∂h_j/∂x‖ of each feature of h = ``model`` (x), (n, w): how far, to first order, x moves when h_j
    becomes 0. A feature that does not depend on x has 0.

    Soteria maximises ‖x − x'‖ over representations with few entries changed (§4.2, with the same first-order
    approximation). ``model`` treats rows one by one.

    Args:
        model: rows (n, d) → representations (n, w).
        x: (n, d).
    """
    x = x.detach().requires_grad_()
    h = model(x)
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
