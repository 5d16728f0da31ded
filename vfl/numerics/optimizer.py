"""First-order optimisers on one flat float64 vector, updated in place; their state is a dictionary of arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]


class Optimizer(Protocol):
    """What the models need of an optimiser; ``rate`` is its step size and may be changed between steps."""

    rate: float

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step on ``theta`` (n,), in place."""

    def state(self) -> dict[str, Any]:
        """Arrays that :meth:`load` restores bit for bit."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Take up :meth:`state`."""


class Sgd:
    """θ ← θ − η g."""

    def __init__(self, size: int, learning_rate: float) -> None:
        self.rate = learning_rate

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step, in place."""
        theta -= self.rate * gradient

    def state(self) -> dict[str, Any]:
        """Nothing: plain gradient descent remembers nothing."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing to take up."""


class Adam:
    """Kingma and Ba (2015), algorithm 1, with the bias corrections folded into rate and ε.

    Both moments stand in one array, so that a step costs nine array operations.
    """

    def __init__(
        self, size: int, learning_rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.rate, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._moments, self._steps = np.zeros((2, size)), 0
        self._powers = np.empty((2, size))
        self._decay = np.array([[beta1], [beta2]])

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step, in place: θ ← θ − η m̂/(√v̂ + ε)."""
        self._steps += 1
        powers = self._powers
        powers[0] = gradient
        np.multiply(gradient, gradient, out=powers[1])
        powers *= 1 - self._decay
        self._moments *= self._decay
        self._moments += powers
        # m̂/(√v̂ + ε) = (m/c₁)/(√v/c₂ + ε) = (c₂/c₁)·m/(√v + c₂ε), c₁ = 1 − β₁ᵗ, c₂ = √(1 − β₂ᵗ).
        c1, c2 = 1 - self._beta1**self._steps, math.sqrt(1 - self._beta2**self._steps)
        step = np.sqrt(self._moments[1], out=powers[1])
        step += c2 * self._epsilon
        np.divide(self._moments[0], step, out=step)
        step *= self.rate * c2 / c1
        theta -= step

    def state(self) -> dict[str, Any]:
        """Both moments and the step count."""
        return {"moments": self._moments.copy(), "steps": np.array(self._steps)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take up :meth:`state`."""
        self._moments[:], self._steps = state["moments"], int(state["steps"])


OPTIMIZERS: Mapping[str, type[Adam] | type[Sgd]] = {"adam": Adam, "sgd": Sgd}
