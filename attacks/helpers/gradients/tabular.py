"""A batch of a table's rows whose gradient comes nearest to an observed one, pooled over many descents.

Vero et al., 2023 (TabLeak): categories by softmax, ranges by sigmoid, signed Adam on the cosine, an ensemble
whose spread says how far the adversary can trust its own answer. Beside it L-BFGS ends every descent, and
ends that are far worse than the best are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vflens.attacks.helpers.gradients.lbfgs import Progress, minimised
from vflens.attacks.helpers.gradients.matching import Matching
from vflens.attacks.helpers.gradients.table_rows import TableRows
from vflens.attacks.helpers.networks.inversion import array
from vflens.numerics.assignment import in_order_of
from vflens.types import Array

_ENOUGH = 1e-26  # of a relative squared distance: what float64 rounds away
_POOLED = 2.0  # times the least distance: ends beyond say little of the batch
_LAST = 0.02  # of the first rate: that of Adam's last step


@dataclass(frozen=True)
class Descents:
    """How many ``starts``, and from each so many ``steps`` of Adam with its first ``rate``, then at most so
    many ``polishing_steps`` of L-BFGS.
    """

    starts: int
    steps: int
    polishing_steps: int
    rate: float


@dataclass(frozen=True, eq=False)
class PooledRows:
    """A batch ``x`` (n, d); the ``spread`` (n, d) of its numbers over all descents, a standard deviation; the
    least ``distance``, of which ``pooled`` descents came within twice.
    """

    x: Array
    spread: Array
    distance: float
    pooled: int


@dataclass(frozen=True, eq=False)
class TableBatch:
    """A batch of the rows of ``table``, of ``width`` columns, with ``labels`` int (n,) of k ``classes``, as
    free numbers (s, n·d) of s descents.
    """

    table: TableRows
    width: int
    labels: Array
    classes: int

    @property
    def size(self) -> int:
        """Free numbers of one descent."""
        return len(self.labels) * self.width

    def rows(self, free: Tensor) -> Tensor:
        """The rows (s, n, d)."""
        return self.table.rows(free.reshape(len(free), len(self.labels), self.width))

    def slope(self, matching: Matching, free: Tensor) -> tuple[Tensor, Tensor]:
        """The distances (s,) of the gradients of ``free``, and their slopes in it."""
        point = free.detach().requires_grad_()
        y = torch.as_tensor(np.eye(self.classes)[self.labels]).to(point)
        which = torch.zeros(len(point), dtype=torch.long, device=point.device)
        values = matching.distances(self.rows(point), y.expand(len(point), *y.shape), which)
        return values.detach(), torch.autograd.grad(values.sum(), point)[0]


def tabular_inversion(
    model: nn.Module,
    gradient: Mapping[str, Array],
    batch: TableBatch,
    descents: Descents,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> PooledRows:
    """The ``batch`` for the ``gradient`` by name of its mean loss under ``model``, in the model's precision.

    Rows of one label are in the order of the descent of least distance.
    """
    observed = {name: g[None] for name, g in gradient.items()}
    near, exact = Matching(model, observed, "cosine"), Matching(model, observed)
    size = descents.starts, batch.size
    free = torch.as_tensor(rng.normal(size=size)).to(near.like)
    free = _adam(batch, near, free, descents, progress)
    free, values = minimised(
        lambda point, which: batch.slope(exact, point), free, steps=descents.polishing_steps, enough=_ENOUGH
    )
    return _pooled(array(batch.rows(free)), array(values), batch.labels)


def _adam(
    batch: TableBatch, near: Matching, free: Tensor, descents: Descents, progress: Progress | None
) -> Tensor:
    """The ends (s, n·d) of descents from ``free`` by the sign of the slope; the rate falls along a cosine."""
    point = free.clone()
    adam = torch.optim.Adam([point], lr=descents.rate)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(adam, descents.steps, eta_min=_LAST * descents.rate)
    for step in range(descents.steps):
        values, slope = batch.slope(near, point)
        point.grad = slope.sign()
        adam.step()
        fall.step()
        if progress is not None:
            progress(step + 1, values)
    return point.detach()


def _pooled(ends: Array, distances: Array, labels: Array) -> PooledRows:
    """One batch of the ``ends`` (s, n, d) of all descents: the median of those near the best."""
    best = int(distances.argmin())
    ordered = in_order_of(ends[best], ends, labels)
    near = distances <= _POOLED * distances[best]
    median = np.median(ordered[near], axis=0)
    return PooledRows(median, ordered.std(axis=0), float(distances[best]), int(near.sum()))
