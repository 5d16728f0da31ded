"""Model completion with a malicious optimiser: the party's bottom model learns faster than was agreed.

Fu et al., 2022 (USENIX Security), active label inference. The federation is to lean on this model, which then
tells more of the labels, once it is completed as in :mod:`vflens.attacks.pmc`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from vflens.attacks.pmc import PassiveModelCompletion
from vflens.numerics.optimizer import Optimizer, Vector, Zeros
from vflens.plugins.declared import Audited
from vflens.plugins.malicious import OptimizingAttack


class ActiveModelCompletion(PassiveModelCompletion, OptimizingAttack):
    """pmc on a bottom model whose parameters take longer steps where their gradients keep a direction.

    Each step of the agreed optimiser is multiplied, parameter by parameter, by r = 1 + γ v_t/v_{t−1} inside
    [1, r_max], where v_t = β v_{t−1} + (1−β) g_t follows the gradients g.
    """

    audited: ClassVar[Audited | None] = None

    gain: float = Field(1.0, ge=1e-6, le=1e6, description="γ, how much a kept direction adds")
    most: float = Field(5.0, ge=1, le=1e6, description="r_max, the largest factor of a step; 1: as agreed")
    momentum: float = Field(0.9, ge=0, lt=1, description="β, how much stays of the gradients before")

    def optimizer(self, agreed: Optimizer, size: int, zeros: Zeros) -> Optimizer:
        return _Lengthened(self, agreed, zeros((size,)))


class _Lengthened:
    """The steps of ``agreed``, each multiplied by r (n,)."""

    def __init__(self, of: ActiveModelCompletion, agreed: Optimizer, velocity: Vector) -> None:
        self._of, self._agreed, self._velocity = of, agreed, velocity
        self.rate = agreed.rate

    def update(self, theta: Vector, gradient: Vector) -> None:
        before, added = theta + 0, self._added(gradient)
        self._agreed.rate = self.rate
        self._agreed.update(theta, gradient)
        theta += added * (theta - before)

    def _added(self, gradient: Vector) -> Vector:
        """What r is above 1 (n,): 0 where the direction turned, or nothing came before."""
        before, beta, gain = self._velocity, self._of.momentum, self._of.gain
        self._velocity = beta * before + (1 - beta) * gradient
        # Kept inside before it is divided: by a mean that faded away the quotient would overflow.
        largest = abs(before) * ((self._of.most - 1) / gain)
        ratio = self._velocity.clip(-largest, largest) / (before + (before == 0))
        return gain * ratio.clip(0)

    def state(self) -> dict[str, Any]:
        return {**self._agreed.state(), "velocity": self._velocity + 0}

    def load(self, state: Mapping[str, Any]) -> None:
        self._agreed.load(state)
        self._velocity = state["velocity"] + 0
