"""Batches whose gradients come nearest to observed ones: by L-BFGS, or by signed Adam.

Both go down from several starts of every batch, many side by side, and keep the end of least distance, the
only figure that an adversary has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from vflens.attacks.helpers.gradients.lbfgs import Progress, minimised
from vflens.attacks.helpers.gradients.matching import Matching
from vflens.attacks.helpers.networks.inversion import array, image_places, total_variation
from vflens.types import Array, ColumnInfo

_AT_ONCE = {"cpu": 32, "cuda": 1024}  # guesses in one block: their gradients fit into the caches; fill a GPU
_ENOUGH = 1e-26  # of a relative squared distance: what float64 rounds away


@dataclass(frozen=True, eq=False)
class BatchShape:
    """n ``rows`` of ``columns``, each with one of k ``classes``.

    ``first`` (m, s, n, d) are the rows at which the s descents for each of m observed gradients begin; None:
    uniform in the box.
    """

    rows: int
    columns: Sequence[ColumnInfo]
    classes: int
    first: Array | None = None


@dataclass(frozen=True, eq=False)
class Guessed:
    """m batches: rows ``x`` (m, n, d), beliefs ``labels`` (m, n, k), and the ``distance`` (m,) of their
    gradients. The order of a batch's rows is arbitrary, but for labels that were given.
    """

    x: Array
    labels: Array
    distance: Array


@dataclass(frozen=True, eq=False)
class _Block:
    """Guesses that go down side by side: of the observed gradients ``which`` (a,), first rows ``x`` (a, n, d)
    and labels ``y`` (a, n, k), known ones or first logits.
    """

    which: Tensor
    x: Tensor
    y: Tensor


_Ends: TypeAlias = tuple[Tensor, Tensor, Tensor]  # rows, beliefs, distances


def deep_leakage(
    matching: Matching,
    shape: BatchShape,
    rng: np.random.Generator,
    *,
    labels: Array | None = None,
    starts: int = 1,
    steps: int = 300,
    progress: Progress | None = None,
) -> Guessed:
    """Deep leakage from gradients: L-BFGS from uniform rows, inside no box (Zhu et al., 2019, algorithm 1).

    Labels are found with the rows, as softmax of logits that are normal at first, unless ``labels`` (m, n)
    were restored before (Zhao et al., 2020, iDLG). The method asks for second derivatives: with ReLU and
    maxima, which have none, more starts end far from every solution.

    Args:
        matching: the m observed gradients, best with the distance ``squares``.
        shape: that of every batch.
        rng: draws the starts.
        labels: integers, or None.
        starts: of every batch.
        steps: of L-BFGS, at most.
        progress: see :data:`vflens.attacks.helpers.gradients.lbfgs.Progress`; each block begins anew.
    """

    def descend(block: _Block) -> _Ends:
        numbers = block.x[0].numel()

        def batches(point: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
            x = point[:, :numbers].reshape(-1, *block.x.shape[1:])
            if labels is not None:
                return x, block.y[which]
            return x, torch.softmax(point[:, numbers:].reshape(-1, *block.y.shape[1:]), dim=2)

        def objective(point: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
            point = point.detach().requires_grad_()
            values = matching.distances(*batches(point, which), block.which[which])
            return values.detach(), torch.autograd.grad(values.sum(), point)[0]

        learned = [block.x] if labels is not None else [block.x, block.y]
        first = torch.cat([part.flatten(1) for part in learned], dim=1)
        ends, values = minimised(objective, first, steps=steps, enough=_ENOUGH, progress=progress)
        return (*batches(ends, torch.arange(len(ends), device=ends.device)), values)

    return _descended(matching, shape, labels, starts, rng, descend=descend)


def cosine_inversion(
    matching: Matching,
    shape: BatchShape,
    labels: Array,
    rng: np.random.Generator,
    *,
    starts: int = 1,
    steps: int = 2400,
    rate: float = 0.1,
    smoothness: float = 0.01,
    progress: Progress | None = None,
) -> Guessed:
    """Inverting gradients: signed Adam in the box [0, 1], with total variation (Geiping et al., 2020, §5).

    Adam sees the signs of the gradient alone; its rate falls to a tenth after 3/8, 5/8 and 7/8 of the steps.

    Args:
        matching: the m observed gradients, best with the distance ``cosine``.
        shape: that of every batch.
        labels: those of the batches, integers (m, n), restored before.
        rng: draws the starts, uniform in the box.
        starts: of every batch.
        steps: of Adam.
        rate: its first step size, in units of the box.
        smoothness: weight of an image's total variation per pixel; columns that are no image have none.
        progress: see :data:`vflens.attacks.helpers.gradients.lbfgs.Progress`; each block begins anew.
    """
    grid = image_places(shape.columns) if smoothness else None

    def descend(block: _Block) -> _Ends:
        x = block.x.clone().requires_grad_()
        adam = torch.optim.Adam([x], lr=rate)
        milestones = [steps * eighths // 8 for eighths in (3, 5, 7)]
        schedule = torch.optim.lr_scheduler.MultiStepLR(adam, milestones, gamma=0.1)
        for step in range(steps):
            distances = matching.distances(x, block.y, block.which)
            loss = distances.sum()
            if grid is not None:
                loss = loss + smoothness * total_variation(x.flatten(0, 1)[:, grid]).sum() / grid.numel()
            x.grad = torch.autograd.grad(loss, x)[0].sign()
            adam.step()
            schedule.step()
            with torch.no_grad():
                x.clamp_(0, 1)
            if progress is not None:
                progress(step + 1, distances.detach())
        x = x.detach()
        return x, block.y, matching.distances(x, block.y, block.which).detach()

    return _descended(matching, shape, labels, starts, rng, descend=descend)


def _descended(
    matching: Matching,
    shape: BatchShape,
    labels: Array | None,
    starts: int,
    rng: np.random.Generator,
    *,
    descend: Callable[[_Block], _Ends],
) -> Guessed:
    """The end of least distance of ``starts`` descents for each observed gradient."""
    count, like = len(matching) * starts, matching.like
    which = np.repeat(np.arange(len(matching)), starts)
    size = count, shape.rows, len(shape.columns)
    x = rng.random(size) if shape.first is None else shape.first.reshape(size)
    if labels is None:
        y = rng.normal(size=(count, shape.rows, shape.classes))
    else:
        y = np.eye(shape.classes)[np.asarray(labels)[which]]
    at_once = _AT_ONCE.get(like.device.type, _AT_ONCE["cpu"])
    blocks = (slice(i, i + at_once) for i in range(0, count, at_once))
    parts = [descend(_block(like, which[at], x[at], y[at])) for at in blocks]
    ends, beliefs, distances = (array(torch.cat(side)) for side in zip(*parts, strict=True))
    best = np.arange(len(matching)) * starts + distances.reshape(-1, starts).argmin(axis=1)
    return Guessed(ends[best], beliefs[best], distances[best])


def _block(like: Tensor, which: Array, x: Array, y: Array) -> _Block:
    """In the precision and on the device of ``like``."""
    at = torch.as_tensor(which, device=like.device)
    return _Block(at, torch.as_tensor(x).to(like), torch.as_tensor(y).to(like))
