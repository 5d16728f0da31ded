"""What a data party's releases cost its rows: the budget that refuses one, and the figures of its folder."""

from __future__ import annotations

from functools import cached_property

from vfl.accountant import Accountant
from vfl.config import ActiveConfig, PassiveConfig
from vfl.defense import GATE_HOOKS
from vfl.gate import DefenseChain, ReleaseGate
from vfl.metrics import Metrics
from vfl.payload import MODEL_VERSION
from vfl.types import Exchange, Phase, Point


class Spending:
    """The accountant of what a party with the defences of ``chain`` sends at ``point``."""

    def __init__(self, config: PassiveConfig | ActiveConfig, chain: DefenseChain, point: Point) -> None:
        self._party, self._limits = config.party, config.limits
        self._chain, self._point = chain, point

    @cached_property
    def accountant(self) -> Accountant:
        """Of the fitted defences: they exist once rows are aligned."""
        return Accountant.of(self._chain.claims_at(GATE_HOOKS[self._point]), self._limits.delta)

    def check(self, exchange: Exchange) -> None:
        """Refuse a release of rows that their budget does not cover: of training rows the next, of prediction rows the only one.

        Raises:
            StateError: naming the budget.
        """
        budget, training = self._limits.epsilon, exchange.phase is Phase.TRAIN
        releases, what = (exchange.round + 1, "a training row") if training else (1, "a prediction row")
        if budget is not None:
            self.accountant.check(releases, budget, what)

    def record(self, metrics: Metrics, gate: ReleaseGate, epochs: int) -> None:
        """How often a training row was released, at most, and the ε that this and one prediction come to."""
        total = self.accountant.total(epochs) if epochs else None
        if total is not None:
            metrics.add("training_releases", epochs, target=self._party)
            metrics.add("training_epsilon", total, target=self._party)
            if len(gate.released_rows(self._point, MODEL_VERSION)):
                metrics.add("prediction_epsilon", self.accountant.total(1) or 0.0, target=self._party)
