"""The steps that all take: logistic regression on 256 × 20 made-up numbers, whole batches, no penalty."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ROWS, COLUMNS, RATE = 256, 20, 0.5
#: Steps of the measured run, and of one before it, which is not counted.
STEPS, FIRST = 40, 3


class Taken(NamedTuple):
    """What the steps took: seconds of the clock; processor seconds and sent bytes of all parties; θ (d,)."""

    seconds: float
    core: float
    sent: float
    theta: Array


def data() -> tuple[Array, Array]:
    """Features float64 (n, d) in [0, 1] and labels (n,), 0 or 1."""
    rng = np.random.default_rng(20)
    features = rng.random((ROWS, COLUMNS))
    logits = (features - 0.5) @ rng.normal(size=COLUMNS) * 2
    return features, (rng.random(ROWS) < 1 / (1 + np.exp(-logits))).astype(float)


def in_the_clear(steps: int) -> Array:
    """θ (d,) after so many steps in float64."""
    features, labels = data()
    theta = np.zeros(COLUMNS)
    for _ in range(steps):
        theta -= RATE / ROWS * features.T @ (1 / (1 + np.exp(-features @ theta)) - labels)
    return theta


def row(name: str, taken: Taken) -> None:
    """Print a row of the table; all steps led to θ, those that are not counted too."""
    error = np.abs(taken.theta - in_the_clear(FIRST + STEPS)).max()
    found = (
        f"{STEPS / taken.seconds:.3g} steps/s",
        f"{taken.core / STEPS * 1e3:.3g} ms",
        f"{taken.sent / STEPS / 1e3:.3g} kB",
        f"{error:.1e}",
    )
    print(f"| {name} | {' | '.join(found)} |")
    sys.stdout.flush()
