"""First-order optimisers on one flat float64 vector, updated in place; their state is a dictionary of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]


class Optimizer(Protocol):
    """What the models need of an optimiser."""

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step on ``theta`` (n,), in place."""

    def state(self) -> dict[str, Any]:
        """Arrays that :meth:`load` restores bit for bit."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Take up :meth:`state`."""


class Sgd:
    """θ ← θ − η g."""

    def __init__(self, size: int, learning_rate: float) -> None:
        self._rate = learning_rate

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step, in place."""
        theta -= self._rate * gradient

    def state(self) -> dict[str, Any]:
        """Nothing: plain gradient descent remembers nothing."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing to take up."""


class Adam:
    """Kingma and Ba (2015), algorithm 1, with the bias corrections folded into the rate."""

    def __init__(
        self, size: int, learning_rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self._rate, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._mean, self._square, self._steps = np.zeros(size), np.zeros(size), 0

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step, in place: θ ← θ − η m̂/(√v̂ + ε)."""
        self._steps += 1
        self._mean *= self._beta1
        self._mean += (1 - self._beta1) * gradient
        self._square *= self._beta2
        self._square += (1 - self._beta2) * gradient * gradient
        correction = np.sqrt(1 - self._beta2**self._steps)
        rate = self._rate / (1 - self._beta1**self._steps)
        theta -= rate * self._mean / (np.sqrt(self._square) / correction + self._epsilon)

    def state(self) -> dict[str, Any]:
        """Both moments and the step count."""
        return {"mean": self._mean.copy(), "square": self._square.copy(), "steps": np.int64(self._steps)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take up :meth:`state`."""
        self._mean, self._square = np.array(state["mean"]), np.array(state["square"])
        self._steps = int(state["steps"])


OPTIMIZERS: Mapping[str, type[Adam] | type[Sgd]] = {"adam": Adam, "sgd": Sgd}
