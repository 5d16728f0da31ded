"""First-order optimisers on one flat vector, updated in place; their state is a dictionary of arrays.

They use operators alone: the vector may be NumPy's or torch's, also on a GPU. ``zeros`` makes arrays of its
kind.
"""

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

Vector: TypeAlias = Any  # of NumPy or torch
Zeros: TypeAlias = Callable[[tuple[int, ...]], Vector]


class Optimizer(Protocol):
    """What the models need of an optimiser; ``rate`` is its step size and may be changed between steps."""

    rate: float

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step on ``theta`` (n,), in place."""

    def state(self) -> dict[str, Any]:
        """Arrays that :meth:`load` restores bit for bit."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""


class Sgd:
    """θ ← θ − η g."""

    def __init__(self, size: int, learning_rate: float, zeros: Zeros = np.zeros) -> None:
        self.rate = learning_rate

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step, in place."""
        theta -= self.rate * gradient

    def state(self) -> dict[str, Any]:
        """Empty: plain gradient descent has no state."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""


class Adam:
    """Kingma and Ba (2015), algorithm 1, with the bias corrections folded into rate and ε.

    Both moments share one array, so that a step costs a dozen array operations.
    """

    def __init__(
        self,
        size: int,
        learning_rate: float,
        zeros: Zeros = np.zeros,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        self.rate, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._moments, self._steps = zeros((2, size)), 0
        self._powers = zeros((2, size))
        # Rows are views, made once: each takes as long as a step of few numbers.
        (self._mean, self._square), (self._step, self._root) = self._moments, self._powers
        self._decay = zeros((2, 1))
        self._decay[0], self._decay[1] = beta1, beta2
        self._gain = 1 - self._decay

    def update(self, theta: Vector, gradient: Vector) -> None:
        """One step, in place: θ ← θ − η m̂/(√v̂ + ε)."""
        self._steps += 1
        powers, step, root = self._powers, self._step, self._root
        powers[:] = gradient
        root *= gradient
        powers *= self._gain
        self._moments *= self._decay
        self._moments += powers
        # m̂/(√v̂ + ε) = (m/c₁)/(√v/c₂ + ε) = (c₂/c₁)·m/(√v + c₂ε), c₁ = 1 − β₁ᵗ, c₂ = √(1 − β₂ᵗ).
        c1, c2 = 1 - self._beta1**self._steps, math.sqrt(1 - self._beta2**self._steps)
        root[:] = self._square
        root **= 0.5
        root += c2 * self._epsilon
        step[:] = self._mean
        step /= root
        step *= self.rate * c2 / c1
        theta -= step
        # Without gradient they fade to subnormal numbers, slow on some processors: docs/performance.md.
        if self._steps % 100 == 0:
            self._moments *= abs(self._moments) > 1e-290

    def state(self) -> dict[str, Any]:
        """Both moments and the step count."""
        return {"moments": copy.deepcopy(self._moments), "steps": np.array(self._steps)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""
        self._moments[:], self._steps = state["moments"], int(state["steps"])


OPTIMIZERS: Mapping[str, type[Adam] | type[Sgd]] = {"adam": Adam, "sgd": Sgd}
