"""One step of training on shares in one process: both computing parties, their dealer, and all they see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.numerics.fixed_point import encoded
from vflens.numerics.shares.response import IDENTITY, SIGMOID
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS, Scale, fitting
from vflens.numerics.shares.step import BatchShares, Masks, computing, dealt, mask_sizes, unpacked
from vflens.types import Array

#: Those of both kinds of regression, each with its own fraction bits.
SCALES = {
    "logistic": fitting(SIGMOID, 0.5, 1e-3, 64, columns=6, steps=1000),
    "linear": fitting(IDENTITY, 0.08, 1e-3, 64, columns=6, steps=1000),
}


def uniform(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(0, 2**64, shape, np.uint64)


@dataclass
class Data:
    """A batch's features (n, d) and labels (n, k), and parameters (d, k), as integers."""

    features: Array
    labels: Array
    theta: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, scale: Scale, rows: int, columns: int, logits: int) -> Data:
        bits = rng.integers(0, 2, (rows, logits)).astype(float)
        return cls(
            encoded(rng.random((rows, columns)), FEATURE_BITS, 1),
            encoded(bits, scale.response.bits, 1),
            encoded(rng.normal(size=(columns, logits)), PARAMETER_BITS, 1),
        )


@dataclass
class Hidden:
    """What one computing party holds of the masks: of U (n, d), of θ (d, k), and of the step's."""

    u: Array
    theta: Array
    masks: Masks


def deal(
    rng: np.random.Generator, data: Data, scale: Scale, theta: Array | None = None
) -> tuple[Hidden, Hidden]:
    """Shares of the active party and of the other one, with ``theta`` as the active party's share of θ."""
    (rows, columns), logits = data.features.shape, data.labels.shape[1]
    drawn, derived = mask_sizes(rows, columns, logits, scale.response)
    own, other = uniform(rng, drawn), uniform(rng, drawn + derived)
    u = uniform(rng, rows, columns), uniform(rng, rows, columns)
    active = np.append(own, dealt(own, other, u[0] + u[1], logits, scale))
    theta = uniform(rng, columns, logits) if theta is None else theta
    return (
        Hidden(u[0], theta, unpacked(active, rows, columns, logits, scale.response)),
        Hidden(u[1], data.theta - theta, unpacked(other, rows, columns, logits, scale.response)),
    )


@dataclass
class Seen:
    """All that crossed between the computing parties: E, what each sent, what was opened; and the new θ."""

    e: Array
    sent: tuple[list[Array], list[Array]]
    opened: list[Array]
    theta: tuple[Array, Array]


def one_step(data: Data, hidden: tuple[Hidden, Hidden], scale: Scale) -> Seen:
    """Run both parties against each other; the active one is first."""
    e = data.features - hidden[0].u - hidden[1].u
    nothing = np.zeros_like(data.labels)
    steps = [
        computing(own.theta, BatchShares(e, own.u, labels), own.masks, scale, first=i == 0)
        for i, (own, labels) in enumerate(zip(hidden, (data.labels, nothing), strict=True))
    ]
    sent: tuple[list[Array], list[Array]] = ([next(steps[0])], [next(steps[1])])
    opened: list[Array] = []
    while True:
        opened.append(sent[0][-1] + sent[1][-1])
        found: list[Array] = []
        for step, own in zip(steps, sent, strict=True):
            try:
                own.append(step.send(opened[-1]))
            except StopIteration as stop:
                found.append(stop.value)
        if found:
            return Seen(e, sent, opened, (found[0], found[1]))
