"""One step of logistic or linear regression on shares: what a computing party does, what the dealer gives.

Two computing parties hold shares of the parameters θ (d, k) and of a mask U of the features X; E = X − U was
opened once. A step opens four arrays, each with a fresh uniform mask: θ − v, z + r, the residual − w, and the
change of θ + t. A product with a shared factor is local once the other one is open: X θ = E θ + U (θ − v) +
U v (Beaver, 1991). The dealer knows all masks and no opened array. It gives shares of U v, of Uᵀw, of what
the response needs of r, and of the pair of t.
"""

from collections.abc import Generator
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from vflens.array import Array
from vflens.numerics.shares.response import Response
from vflens.numerics.shares.scale import Scale
from vflens.numerics.shares.truncation import OFFSET, pair, truncated


def product(matrix: Array, columns: Array) -> Array:
    """``matrix`` (n, d) times ``columns`` (d, k), modulo 2⁶⁴: uint64 (n, k).

    It is ``matrix @ columns`` bit for bit: such sums are exact in any order, and no BLAS takes part. NumPy's
    loop for ``@`` of integers uses no vector instructions, the one for a sum over the last index of both
    factors does (docs/performance.md, small choices). A transposed ``matrix`` needs no copy.
    """
    whole: Array = np.einsum("ij,kj->ik", matrix, np.ascontiguousarray(columns.T))
    return whole


_NOTHING = np.uint64(0)
_DRAWN = 4


class Masks(NamedTuple):
    """Masks of one step of n rows, d columns and k logits, or a party's shares of them, uint64.

    The first four are drawn: v and t (d, k), w and r (n, k), uniform and independent. The others follow from
    them: U v (n, k), Uᵀw (d, k), what the response needs of r (m, n, k), ⌊t/2ˢ⌋ and msb t (d, k).
    """

    v: Array
    t: Array
    w: Array
    r: Array
    uv: Array
    uw: Array
    of_r: Array
    high: Array
    top: Array


@lru_cache(maxsize=16)  # a run has batches of two sizes
def _places(rows: int, columns: int, logits: int, response: Response) -> list[tuple[slice, tuple[int, ...]]]:
    """Where each of the masks stands among a step's numbers, and its shape."""
    theta, z = (columns, logits), (rows, logits)
    shapes: list[tuple[int, ...]] = [theta, theta, z, z, z, theta, (response.dealt, *z), theta, theta]
    ends = pairwise(accumulate(map(prod, shapes), initial=0))
    return [(slice(*place), shape) for place, shape in zip(ends, shapes, strict=True)]


def mask_sizes(rows: int, columns: int, logits: int, response: Response) -> tuple[int, int]:
    """How many numbers one step's masks are: those drawn, and those that follow from them."""
    ends = [place.stop for place, _ in _places(rows, columns, logits, response)]
    return ends[_DRAWN - 1], ends[-1] - ends[_DRAWN - 1]


def unpacked(numbers: Array, rows: int, columns: int, logits: int, response: Response) -> Masks:
    """The masks in ``numbers`` uint64 (m,): those drawn, then those that follow."""
    places = _places(rows, columns, logits, response)
    return Masks(*(numbers[place].reshape(shape) for place, shape in places))


def dealt(drawn: Array, other: Array, u: Array, logits: int, scale: Scale) -> Array:
    """What the dealer sends one party: its shares of the masks that follow, uint64 (m,).

    Args:
        drawn: that party's shares of the drawn masks, which it draws itself, uint64.
        other: all shares of the other party, which draws those that follow as well, uint64.
        u: the mask U (n, d) of the batch, uint64.
        logits: k.
        scale: of the step.
    """
    (rows, columns), own, response = u.shape, len(drawn), scale.response
    masks = unpacked(np.append(drawn + other[:own], other[own:]), rows, columns, logits, response)
    of_r = response.of_mask(masks.r)
    follow = (product(u, masks.v), product(u.T, masks.w), of_r, *pair(masks.t, scale.shift))
    return np.concatenate([part.ravel() for part in follow]) - other[own:]


class BatchShares(NamedTuple):
    """The rows of one step: the opened E (n, d), the party's shares of U (n, d) and of labels (n, k); uint64.

    Labels have the response's fraction bits. The active party's share is the labels themselves, the other's
    is zero.
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
    response = scale.response
    delta = yield theta - masks.v
    logits = product(batch.e, theta) + product(batch.u, delta) + masks.uv
    opened = yield logits + masks.r + (response.offset if first else _NOTHING)
    residual = response.share(opened, masks.of_r, first=first) - batch.labels
    rho = yield residual - masks.w
    gradient = product(batch.e.T, residual) + product(batch.u.T, rho) + masks.uw
    change = _change(theta, gradient, scale, len(batch.e), decayed)
    hidden = yield change + masks.t + (OFFSET if first else _NOTHING)
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
        rows: X uint64 (n, d) with 16 fraction bits, and labels (n, k) with the response's.
        opened: the arrays that were opened second and fourth. They are uniform whatever the data are, and say
            how logits and the change of θ are rounded.
        scale: the rates of the step.
        decayed: the rows of θ that the penalty counts, bool (d, 1).
    """
    turned, hidden = opened
    features, labels = rows
    response = scale.response
    mask = turned - response.offset - features @ theta
    residual = response.share(turned, response.of_mask(mask)) - labels
    change = _change(theta, features.T @ residual, scale, len(features), decayed)
    return theta - truncated(hidden, *pair(hidden - OFFSET - change, scale.shift), scale.shift)


def _change(theta: Array, gradient: Array, scale: Scale, rows: int, decayed: Array | bool) -> Array:
    """What is subtracted from θ, before truncation."""
    penalty = np.where(decayed, theta * np.uint64(scale.decay), _NOTHING)
    change: Array = gradient * np.uint64(scale.rate(rows)) + penalty
    return change
