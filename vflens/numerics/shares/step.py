"""One step of logistic regression on shares: what a computing party does, and what the dealer gives.

Two computing parties hold shares of the parameters θ (d, k) and of a mask U of the features X; E = X − U was
opened once. A step opens four arrays, each with a fresh uniform mask: θ − v, z + r, the residual − w, and the
change of θ + t. A product with a shared factor is local once the other one is open: X θ = E θ + U (θ − v) +
U v (Beaver, 1991). The dealer knows all masks and no opened array. It gives shares of U v, of Uᵀw, of the
waves of r, and of the pair of t.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from vflens.array import Array
from vflens.numerics.shares.scale import Scale
from vflens.numerics.shares.sigmoid import HARMONICS, RESIDUAL_BITS, series, waves
from vflens.numerics.shares.truncation import OFFSET, pair, truncated

_HALF = np.uint64(1 << (RESIDUAL_BITS - 1))
_DRAWN = 4


class Masks(NamedTuple):
    """Masks of one step of n rows, d columns and k logits, or a party's shares of them, uint64.

    The first four are drawn: v and t (d, k), w and r (n, k), uniform and independent. The others follow from
    them: U v (n, k), Uᵀw (d, k), the waves of r (2, 12, n, k), ⌊t/2ˢ⌋ and msb t (d, k).
    """

    v: Array
    t: Array
    w: Array
    r: Array
    uv: Array
    uw: Array
    waves: Array
    high: Array
    top: Array


def _shapes(rows: int, columns: int, logits: int) -> list[tuple[int, ...]]:
    theta, z = (columns, logits), (rows, logits)
    return [theta, theta, z, z, z, theta, (2, HARMONICS, *z), theta, theta]


def mask_sizes(rows: int, columns: int, logits: int) -> tuple[int, int]:
    """How many numbers one step's masks are: those drawn, and those that follow from them."""
    sizes = [int(np.prod(shape)) for shape in _shapes(rows, columns, logits)]
    return sum(sizes[:_DRAWN]), sum(sizes[_DRAWN:])


def unpacked(numbers: Array, rows: int, columns: int, logits: int) -> Masks:
    """The masks in ``numbers`` uint64 (m,): those drawn, then those that follow."""
    shapes = _shapes(rows, columns, logits)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = np.split(numbers, ends[:-1])
    return Masks(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


def dealt(drawn: Array, other: Array, u: Array, logits: int, shift: int) -> Array:
    """What the dealer sends one party: its shares of the masks that follow, uint64 (m,).

    Args:
        drawn: that party's shares of the drawn masks, which it draws itself, uint64.
        other: all shares of the other party, which draws those that follow as well, uint64.
        u: the mask U (n, d) of the batch, uint64.
        logits: k.
        shift: s of the truncation.
    """
    (rows, columns), own = u.shape, len(drawn)
    masks = unpacked(np.append(drawn + other[:own], other[own:]), rows, columns, logits)
    of_r = waves(masks.r).view(np.uint64)
    follow = (u @ masks.v, u.T @ masks.w, of_r, *pair(masks.t, shift))
    return np.concatenate([part.ravel() for part in follow]) - other[own:]


class BatchShares(NamedTuple):
    """The rows of one step: the opened E (n, d), the party's shares of U (n, d) and of labels (n, k); uint64.

    Labels have 28 fraction bits. The active party's share is the labels themselves, the other's is zero.
    """

    e: Array
    u: Array
    labels: Array


def computing(
    theta: Array, batch: BatchShares, masks: Masks, scale: Scale, *, first: bool, decayed: Array | bool = True
) -> Generator[Array, Array, Array]:
    """One step of a computing party: gives its share of each of the four arrays to open, takes what was
    opened, and returns its share of the new θ.

    Args:
        theta: its share of θ, uint64 (d, k) with 20 fraction bits.
        batch: its shares of the rows.
        masks: its shares of the masks.
        scale: the rates of the step.
        first: whether it is the one of the two that takes up what is public.
        decayed: the rows of θ that the penalty counts, bool (d, 1).
    """
    delta = yield theta - masks.v
    logits = batch.e @ theta + batch.u @ delta + masks.uv
    opened = yield logits + masks.r
    residual = series(opened, masks.waves) - batch.labels + (_HALF if first else np.uint64(0))
    rho = yield residual - masks.w
    gradient = batch.e.T @ residual + batch.u.T @ rho + masks.uw
    change = _change(theta, gradient, scale, len(batch.e), decayed)
    hidden = yield change + masks.t + (OFFSET if first else np.uint64(0))
    return theta - truncated(hidden, masks.high, masks.top, scale.shift, first=first)


def twin(
    theta: Array,
    rows: tuple[Array, Array],
    opened: tuple[Array, Array],
    scale: Scale,
    decayed: Array | bool = True,
) -> Array:
    """The same step without shares: the new θ, bit for bit.

    Args:
        theta: θ uint64 (d, k).
        rows: X uint64 (n, d) with 16 fraction bits, and labels (n, k) with 28.
        opened: the arrays that were opened second and fourth. They are uniform whatever the data are, and say
            how logits and the change of θ are rounded.
        scale: the rates of the step.
        decayed: the rows of θ that the penalty counts, bool (d, 1).
    """
    turned, hidden = opened
    features, labels = rows
    residual = series(turned, waves(turned - features @ theta).view(np.uint64)) + _HALF - labels
    change = _change(theta, features.T @ residual, scale, len(features), decayed)
    return theta - truncated(hidden, *pair(hidden - OFFSET - change, scale.shift), scale.shift)


def _change(theta: Array, gradient: Array, scale: Scale, rows: int, decayed: Array | bool) -> Array:
    """What is subtracted from θ, before truncation."""
    penalty = np.where(decayed, theta * np.uint64(scale.decay), np.uint64(0))
    change: Array = gradient * np.uint64(scale.rate(rows)) + penalty
    return change
