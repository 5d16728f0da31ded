"""Inverting a bottom model: the inputs whose embedding comes nearest to the observed ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from vfl.errors import ConfigError
from vfl.model import image_grid
from vfl.types import Array, ColumnInfo

_BATCH = 512  # rows at a time: what fits into the caches


def inverted(
    model: nn.Module,
    embeddings: Array,
    columns: Sequence[ColumnInfo],
    *,
    steps: int,
    rate: float,
    smoothness: float,
    learned: Sequence[Tensor] = (),
) -> tuple[Array, Array]:
    """Inputs (N, d) in [0, 1] that minimise ‖G(x) − H‖² + smoothness·TV(x) row by row, and ‖G(x) − H‖ (N,).

    ``learned`` are parameters of G that are minimised over too, all rows together. Adam from 0 (FedAdOb's WMI is step 2 of CAFE), kept inside the box; TV is left out where the columns are no image.
    """
    grid = _grid(columns) if smoothness else None
    model.eval()
    parts = [
        _one_batch(
            model,
            torch.from_numpy(embeddings[i : i + _BATCH]),
            len(columns),
            grid,
            (steps, rate, smoothness, learned),
        )
        for i in range(0, len(embeddings), _BATCH)
    ]
    x = np.concatenate([p[0] for p in parts]) if parts else np.zeros((0, len(columns)))
    return x, np.concatenate([p[1] for p in parts]) if parts else np.zeros(0)


def _one_batch(
    model: nn.Module,
    h: Tensor,
    width: int,
    grid: Tensor | None,
    settings: tuple[int, float, float, Sequence[Tensor]],
) -> tuple[Array, Array]:
    steps, rate, smoothness, learned = settings
    x = torch.zeros((len(h), width), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([x, *learned], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - h) ** 2).sum()
        if grid is not None:
            loss = loss + smoothness * _total_variation(x[:, grid])
        torch.autograd.backward(loss, inputs=[x, *learned])
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            x.clamp_(0, 1)
    with torch.no_grad():
        return x.numpy().copy(), (model(x) - h).norm(dim=1).numpy()


def _total_variation(images: Tensor) -> Tensor:
    """Σ of the absolute differences between neighbouring pixels of (n, height, width)."""
    return images.diff(dim=1).abs().sum() + images.diff(dim=2).abs().sum()


def _grid(columns: Sequence[ColumnInfo]) -> Tensor | None:
    try:
        return torch.from_numpy(image_grid(columns))
    except ConfigError:  # no image: nothing to smooth
        return None
