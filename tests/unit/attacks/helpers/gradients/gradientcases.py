"""Gradients as clients take them, for attacks on them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from vflens.types import Array


def gradients_of(model: nn.Module, x: Array, y: Array) -> dict[str, Array]:
    """Gradients of the mean loss of each batch of ``x`` (m, n, d) with soft labels ``y`` (m, n, k), in all
    that learn, by name (m, …).
    """
    learned = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found: dict[str, list[Array]] = {name: [] for name in learned}
    for rows, labels in zip(x, y, strict=True):
        model.zero_grad()
        torch.autograd.backward(cross_entropy(model(torch.tensor(rows)), torch.tensor(labels)))
        for name, p in learned.items():
            assert p.grad is not None
            found[name].append(p.grad.numpy().copy())
    return {name: np.stack(g) for name, g in found.items()}
